import { healPolicyOf } from "../../src/agent/agent.ts";
import { type Cycle, type HealOrder, openCycle } from "../../src/agent/cycle.ts";
import type { FleetAnswer } from "../../src/agent/limits/gate.ts";
import type { AgentPolicy } from "../../src/agent/policy/agent-policy.ts";
import { AttemptBook } from "../../src/agent/policy/attempts.ts";
import type { AgentEvent, AgentState } from "../../src/agent/state/state.ts";
import { openStore } from "../../src/agent/state/store.ts";
import { policyFrom } from "../../src/cli/settings/policy.ts";
import type { DiagnosisPolicy } from "../../src/evidence/view.ts";
import type { FailuresByFinding } from "../../src/heal/journal/earlier-failures.ts";
import type { Healing } from "../../src/heal/pipeline.ts";
import type { ActionOutcome, ActionResult } from "../../src/heal/run-action.ts";
import { type Outcome, ok } from "../../src/heal/state/outcome.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import type { Plan, PlannedAction } from "../../src/plan/plan.ts";
import { type Planned, scanNode } from "../../src/plan/scan.ts";
import { AT_ONCE, type NodeParts, snapshotOf } from "../support/snapshot-builder.ts";
import { freshState } from "./metrics/agent-state.ts";

const GO: FleetAnswer = { kind: "go", release: () => Promise.resolve() };

/** An agent's cycle with built snapshots. Nothing is really healed: the test sets the result of each heal. */
export interface ActingAgent {
  readonly cycle: Cycle;
  /** The node for the next scans. */
  node: NodeParts;
  sources: Partial<Snapshot>;
  /** What a scan waits for after it has read the node. */
  pause: () => Promise<void>;
  policy: AgentPolicy;
  gate: (actions: readonly PlannedAction[]) => Promise<FleetAnswer>;
  heal: (shown: Planned, order: HealOrder) => Promise<Outcome<Healing>>;
  readonly healed: Plan[];
  /** How often a plan was made. */
  planned: number;
  readonly due: number[];
  readonly lost: unknown[];
  /** Failed heals in the journal. */
  failures: FailuresByFinding;
  readonly events: AgentEvent[];
  state(): AgentState;
  /** One scan, and the heal that it may start. */
  round(): Promise<void>;
}

export interface ActingAgentOptions {
  readonly ownPodUid?: string;
  readonly attempts?: AttemptBook;
  readonly diagnosis?: DiagnosisPolicy;
}

export function actingAgent(options: ActingAgentOptions = {}): ActingAgent {
  const store = openStore(freshState());
  const agent: Omit<ActingAgent, "cycle" | "round" | "state"> = {
    node: {},
    sources: {},
    pause: () => Promise.resolve(),
    policy: policyFrom({}),
    gate: () => Promise.resolve(GO),
    heal: (shown, order) => healing(agent, shown, order, "healed", () => ({})),
    healed: [],
    planned: 0,
    due: [],
    lost: [],
    failures: new Map(),
    events: [],
  };
  store.onEvent((event) => agent.events.push(event));
  const cycle = openCycle({
    store,
    policy: () => agent.policy,
    attempts: options.attempts ?? new AttemptBook(),
    scan: () =>
      scanNode({
        observe: async () => {
          const snapshot = snapshotOf(agent.node, agent.sources);
          await agent.pause();
          return snapshot;
        },
        policy: () => {
          agent.planned++;
          return healPolicyOf(agent.policy, options.diagnosis ?? AT_ONCE);
        },
      }),
    heal: (shown, order) => agent.heal(shown, order),
    failures: async () => agent.failures,
    gate: (actions) => agent.gate(actions),
    ownPodUid: options.ownPodUid,
    onDue: (atMs) => agent.due.push(atMs),
    onLost: (error) => agent.lost.push(error),
  });
  return Object.assign(agent, {
    cycle,
    state: () => store.state(),
    round: async () => {
      await cycle.run();
      await cycle.idle();
    },
  });
}

/** A heal in which all actions have the same outcome, on a node that is then in this state. */
export async function healing(
  agent: Pick<ActingAgent, "healed" | "planned" | "policy">,
  planned: Planned,
  { narrow, sinks }: HealOrder,
  outcome: ActionOutcome,
  after: () => NodeParts,
): Promise<Outcome<Healing>> {
  const plan = narrow(planned);
  sinks.begin?.(plan, []);
  agent.healed.push(plan);
  const results = plan.actions.map((action): ActionResult => ({ action, outcome, seconds: 0.1 }));
  for (const result of results) sinks.result(result);
  const verified = await scanNode({
    observe: () => Promise.resolve(snapshotOf(after())),
    policy: () => {
      agent.planned++;
      return healPolicyOf(agent.policy, AT_ONCE);
    },
  });
  return ok({ ...verified, results });
}
