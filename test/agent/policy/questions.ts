import type { AgentPolicy, ClassPolicy } from "../../../src/agent/policy/agent-policy.ts";
import { AttemptBook, type Ledger } from "../../../src/agent/policy/attempts.ts";
import {
  type Decision,
  decisionsFor,
  type NodeDecisions,
  type Situation,
} from "../../../src/agent/policy/decisions.ts";
import { policyFrom } from "../../../src/cli/settings/policy.ts";
import type { Finding } from "../../../src/evidence/finding.ts";
import { type NodeView, viewOf } from "../../../src/evidence/view.ts";
import type { ActionOutcome } from "../../../src/heal/run-action.ts";
import type { PlannedAction } from "../../../src/plan/plan.ts";
import { AT_ONCE, snapshotOf } from "../../support/snapshot-builder.ts";
import { actionOn, CLASS } from "../planned-action.ts";

const TEN_A_MINUTE: ClassPolicy = {
  mode: "heal",
  minAgeMs: 0,
  attempts: 3,
  attemptsWithinMs: 60_000,
  coolDownMs: 1000,
};
export const NOON = new Date("2026-03-01T12:00:00Z");

export function policyWith(of: Partial<ClassPolicy>, rest: Partial<AgentPolicy> = {}): AgentPolicy {
  return { ...policyFrom({}), classes: new Map([[CLASS, { ...TEN_A_MINUTE, ...of }]]), ...rest };
}

export const ONE = actionOn("a");

export interface Asked extends Partial<Omit<Situation, "now">> {
  readonly actions?: readonly PlannedAction[];
  readonly view?: Pick<NodeView, "about" | "snapshot">;
  readonly ms?: number;
  readonly seenMs?: number;
  readonly wallClock?: Date;
}

type Decisions = Omit<NodeDecisions, "leftAlone">;

export function ask({ ms = 0, seenMs = 0, wallClock = NOON, actions = [ONE], view, ...rest }: Asked = {}): Decisions {
  const planned = { diagnosis: { view: view ?? viewOf(snapshotOf(), AT_ONCE) }, plan: { actions, leftAlone: [] } };
  const { leftAlone: _none, ...decisions } = decisionsFor(planned, {
    sightings: actions.map(({ finding }) => ({ finding: reported(finding), firstSeenMs: seenMs })),
    ledger: new Map(),
    policy: policyWith({}),
    now: { ms, wallClock },
    ...rest,
  });
  return decisions;
}

function reported({ cure: _cure, followUps: _afterwards, blockedPods: _pods, ...finding }: Finding) {
  return { ...finding, evidence: [], blocks: [], treatment: { ...finding.treatment, steps: [] } };
}

export function decisionOf(asked: Asked = {}): Decision | undefined {
  return ask(asked).decided[0]?.decision;
}

/** The ledger after these outcomes, at these times, on the one subject. */
export function after(policy: AgentPolicy, ...attempts: readonly (readonly [number, ActionOutcome])[]): Ledger {
  const book = new AttemptBook();
  for (const [ms, outcome] of attempts) book.record([{ action: ONE, outcome, reason: "still busy" }], policy, ms);
  return book.ledger;
}
