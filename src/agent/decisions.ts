import { type Finding, podOf, reason } from "../evidence/finding.ts";
import { nodeHolds } from "../evidence/pod-presence.ts";
import type { NodeView } from "../evidence/view.ts";
import type { LeftAlone, Plan } from "../plan/plan.ts";
import type { Planned } from "../plan/scan.ts";
import type { AgentPolicy } from "./policy/agent-policy.ts";
import type { Ledger } from "./policy/attempts.ts";
import { type Decided, type Decisions, decide, type Moment } from "./policy/ledger.ts";
import type { PauseReason, RefusalReason, Sighting, Standing } from "./state/state.ts";

interface Situation {
  readonly policy: AgentPolicy;
  readonly ledger: Ledger;
  readonly sightings: readonly Sighting[];
  readonly ownPodUid: string | undefined;
  readonly now: Moment;
}

export type NodeDecisions = Decisions & Pick<Plan, "leftAlone">;

/** The part of a plan that the agent may execute now, and why not the rest. */
export function decisionsFor({ diagnosis, plan }: Planned, situation: Situation): NodeDecisions {
  const { ownPodUid, ...rest } = situation;
  const own = plan.actions.filter(({ finding }) => isOwnPod(finding, ownPodUid));
  const actions = plan.actions.filter((action) => !own.includes(action));
  const decisions = decide({ ...rest, actions, view: diagnosis.view });
  const ownLeft = own.map(({ finding }) => ({ finding, reason: reason("own-pod", "unghost itself runs in this pod") }));
  return { ...decisions, leftAlone: [...plan.leftAlone, ...ownLeft] };
}

/** Only what may run now, as a plan. */
export function runnablePlan({ decided, leftAlone }: NodeDecisions): Plan {
  return { leftAlone, actions: decided.flatMap(({ action, decision }) => (decision.kind === "run" ? [action] : [])) };
}

/** A standing, and why nothing is done if that is a decision. */
export interface Stand extends Pick<Sighting, "standing" | "attempts"> {
  readonly refusal?: RefusalReason;
}

/** The standing of each finding. A finding that may run now keeps its standing until it does. */
export function standsOf(
  decided: readonly Decided[],
  leftAlone: readonly LeftAlone[],
  pauseReason: PauseReason | undefined,
): ReadonlyMap<string, Stand> {
  return new Map([
    ...leftAlone.map((left) => [left.finding.id, leftAloneStand(left, pauseReason)] as const),
    ...decided.flatMap((one) => {
      const stand = standOf(one, pauseReason);
      return stand === undefined ? [] : [[one.action.finding.id, stand] as const];
    }),
  ]);
}

function leftAloneStand({ finding, reason: { code, text } }: LeftAlone, pauseReason: PauseReason | undefined): Stand {
  const standing: Standing = { kind: "observed", message: text };
  // A manual class was not refused: it was never planned.
  if (!finding.treatment.automatic) return { standing, attempts: 0 };
  return {
    standing,
    attempts: 0,
    refusal: code === "opted-out" ? "opted-out" : (pauseReason?.reason ?? "guard"),
  };
}

function standOf({ decision, attempts }: Decided, pauseReason: PauseReason | undefined): Stand | undefined {
  switch (decision.kind) {
    case "run":
      if (pauseReason === undefined) return undefined;
      return { standing: { kind: "waiting", message: pauseReason.message }, attempts, refusal: pauseReason.reason };
    case "wait":
      return { standing: { kind: "waiting", message: decision.message }, attempts, refusal: decision.reason };
    case "observe":
      return { standing: { kind: "observed", message: decision.message }, attempts, refusal: decision.reason };
    case "give-up":
      return { standing: { kind: "given-up", message: decision.message, next: decision.next }, attempts };
  }
}

/** Annotations in the cluster that pause the whole node. */
export function clusterPause(view: NodeView): PauseReason | undefined {
  const { paused, node } = nodeHolds(view);
  if (paused) return { reason: "paused", message: "the node is paused by unghost.dev/paused" };
  if (node) return { reason: "opted-out", message: "the node is opted out by unghost.dev/ignore" };
  return undefined;
}

/** Unghost runs in this pod: only kubelet may repair it. */
function isOwnPod({ subject }: Finding, ownPodUid: string | undefined): boolean {
  return ownPodUid !== undefined && podOf(subject)?.uid === ownPodUid;
}
