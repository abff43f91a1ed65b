import type { Diagnosis } from "../diagnose/diagnose.ts";
import { type Plan, planHealing } from "../plan/plan.ts";
import type { HealPolicy } from "../plan/policy.ts";
import type { AgentPolicy } from "./policy/agent-policy.ts";
import type { Ledger } from "./policy/attempts.ts";
import { type Decisions, decide, type Moment } from "./policy/ledger.ts";
import { isOwnPod } from "./standings.ts";
import type { Sighting } from "./state.ts";

/** The policy for plan and diagnosis, and the one for the ledger. */
export interface Policies {
  readonly agent: AgentPolicy;
  readonly heal: HealPolicy;
}

export interface Situation {
  readonly policies: Policies;
  readonly ledger: Ledger;
  readonly sightings: readonly Sighting[];
  readonly ownPodUid: string | undefined;
  readonly now: Moment;
}

export type NodeDecisions = Decisions & Pick<Plan, "leftAlone">;

/** The plan like for a manual run, and the part of it that the agent may execute now. */
export function decisionsFor(diagnosis: Diagnosis, situation: Situation): NodeDecisions {
  const { policies, ledger, sightings, ownPodUid, now } = situation;
  const plan = planHealing(diagnosis, policies.heal);
  const own = plan.actions.filter(({ finding }) => isOwnPod(finding, ownPodUid));
  const decisions = decide({
    actions: plan.actions.filter((action) => !own.includes(action)),
    sightings,
    ledger,
    policy: policies.agent,
    view: diagnosis.view,
    now,
  });
  const ownLeft = own.map(({ finding }) => ({ finding, reason: { code: "own-pod" } as const }));
  return { ...decisions, leftAlone: [...plan.leftAlone, ...ownLeft] };
}

/** Only what may run now, as a plan. */
export function runnablePlan({ decided, leftAlone }: NodeDecisions): Plan {
  return { leftAlone, actions: decided.flatMap(({ action, decision }) => (decision.kind === "run" ? [action] : [])) };
}
