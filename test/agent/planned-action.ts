import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import type { PlannedAction } from "../../src/plan/plan.ts";
import { idOf, sandboxOf } from "../support/snapshot-builder.ts";

export const CLASS = "dead-after-crash";
const STOP: Step = { kind: "stop-sandbox", sandboxId: idOf("a") };

/** The planned heal of one dead sandbox. */
export function actionOn(digit: string, more: Partial<Finding> = {}): PlannedAction {
  const subject: Finding["subject"] = { type: "sandbox", sandboxId: idOf(digit), pod: sandboxOf(digit).pod };
  const finding: Finding = {
    id: `${more.class ?? CLASS}/${idOf(digit)}`,
    class: CLASS,
    severity: "critical",
    subject,
    summary: "it is dead",
    evidence: [],
    blocks: [],
    treatment: { automatic: true, reversible: false, steps: [] },
    cure: [],
    ...more,
  };
  return {
    finding,
    rank: "rest",
    steps: [STOP],
    reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
    lane: digit,
  };
}
