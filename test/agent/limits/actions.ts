import type { Step } from "../../../src/evidence/step.ts";
import type { PlannedAction } from "../../../src/plan/plan.ts";
import { idOf } from "../../support/snapshot-builder.ts";

/** An action with these kinds of steps; only the kinds matter to a fleet. */
export function actionOf(steps: readonly Step[], followUps: readonly Step[] = []): PlannedAction {
  return {
    finding: {
      id: "pod-gone/1",
      class: "pod-gone",
      severity: "warning",
      subject: { type: "sandbox", sandboxId: idOf("1") },
      summary: "",
      evidence: [],
      blocks: [],
      treatment: { automatic: true, reversible: false, steps: [] },
      cure: [],
    },
    rank: "rest",
    steps,
    ...(followUps.length === 0 ? {} : { followUps }),
    reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
    lane: "1",
  };
}

export const REMOVAL = actionOf([{ kind: "remove-sandbox", sandboxId: idOf("1") }]);
export const QUARANTINE = actionOf([{ kind: "quarantine-file", path: "/f", health: "empty" }]);
export const ENDING = actionOf([
  { kind: "end-process", pid: 7, startedSecondsAfterBoot: 1, sandboxId: idOf("1") },
  { kind: "remove-sandbox", sandboxId: idOf("1") },
]);
export const KICK = actionOf(
  [{ kind: "quarantine-file", path: "/f", health: "empty" }],
  [{ kind: "kick-pod", namespace: "default", name: "web", uid: "1", node: "n1" }],
);
