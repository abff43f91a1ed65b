import { deadAfterCrash } from "../../src/classes/dead-after-crash.ts";
import type { Diagnosis } from "../../src/diagnose/diagnose.ts";
import type { Candidate } from "../../src/evidence/candidates.ts";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import { viewOf } from "../../src/evidence/view.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { type Plan, planHealing } from "../../src/plan/plan.ts";
import type { HealPolicy } from "../../src/plan/policy.ts";
import {
  containerOf,
  LOST,
  type NodeParts,
  PATIENT,
  recordOf,
  sandboxOf,
  snapshotOf,
} from "../support/snapshot-builder.ts";

export const POLICY: HealPolicy = { ...PATIENT, allDead: false, cap: 100 };
export const A = sandboxOf("a");
export const CURE: Step = { kind: "quarantine-file", path: "/var/lib/cni/x", health: "corrupt" };
export const KICK: Step = { kind: "kick-pod", namespace: "default", name: "b", uid: "b", node: "n" };

export const FINDING: Finding = {
  id: "dead-after-crash/a",
  class: deadAfterCrash.id,
  severity: "warning",
  subject: { type: "sandbox", sandboxId: A.id, pod: A.pod },
  summary: "it is dead",
  evidence: [],
  blocks: [],
  treatment: { automatic: true, reversible: false, steps: [] },
  cure: [],
};

export interface Situation {
  readonly parts?: NodeParts;
  readonly sources?: Partial<Snapshot>;
  readonly policy?: Partial<HealPolicy>;
  readonly dead?: readonly Candidate[];
}

export function diagnosis(findings: readonly Finding[], { parts, sources, dead = DEAD }: Situation): Diagnosis {
  const whole = { sandboxes: [A], records: [recordOf("a")], ...parts };
  return {
    verdict: "ghosts",
    findings,
    pending: [],
    podCreation: { able: "unknown", blockedPods: [] },
    kept: [],
    advice: [],
    dead,
    view: viewOf(snapshotOf(whole, sources), PATIENT),
  };
}

export function planFor(finding: Partial<Finding>, situation: Situation = {}): Plan {
  return planHealing(diagnosis([{ ...FINDING, ...finding }], situation), { ...POLICY, ...situation.policy });
}

/** How far it goes and why: the last step that the ladder chose, or nothing. */
export function decided(finding: Partial<Finding>, situation: Situation = {}): readonly [string, string] {
  const { actions, leftAlone } = planFor(finding, situation);
  const [action] = actions;
  if (action === undefined) return ["left", leftAlone[0]?.reason.code ?? "not even named"];
  return [action.steps.find(({ kind }) => kind.endsWith("-sandbox"))?.kind ?? "cure", action.reason.code];
}

export function candidate(digit: string, retained?: Candidate["retained"]): Candidate {
  const sandbox = sandboxOf(digit);
  const about = { containers: [], results: [], leases: [], plugins: [], shims: [], pids: [] };
  return { sandbox, about, evidence: [], isPodGone: false, ...(retained === undefined ? {} : { retained }) };
}

export const DEAD = [candidate("a")];

export const lost = (digit: string) => [containerOf(digit, { exit: LOST })];
