import { describe, expect, test } from "vitest";
import type { Step } from "../../src/evidence/step.ts";
import { briefSteps, plannedSteps, shortAction, shortDone, stepWords } from "../../src/report/step-words.ts";
import { idOf } from "../support/snapshot-builder.ts";

const sandboxId = idOf("a");
const MARKER: Step = { kind: "multus-marker", sandboxId, dir: "/var/lib/cni/multus" };
const AWAIT: Step = { kind: "await-kubelet", sandboxId };
const STOP: Step = { kind: "stop-sandbox", sandboxId };

test("the plan names each step that changes something", () => {
  expect(shortAction({ steps: [MARKER, AWAIT, STOP] })).toBe("make DEL safe, stop");
});

test.each<[string, readonly Step[], readonly Step[], string]>([
  ["all steps were needed", [MARKER, AWAIT, STOP], [], "DEL made safe, stopped"],
  ["kubelet finished after the obstacle was removed", [MARKER, AWAIT, STOP], [STOP], "DEL made safe"],
  ["kubelet finished and nothing was changed", [AWAIT, STOP], [STOP], "finished by kubelet"],
  ["no step was needed", [STOP], [STOP], "no change"],
])("the result when %s", (_, steps, undone, words) => {
  expect(shortDone({ steps }, undone)).toBe(words);
});

describe("the steps of a plan", () => {
  const action: readonly Step[] = [
    { kind: "quarantine-file", path: "/var/lib/cni/results/cbr0-a-eth0", health: "empty" },
    { kind: "remove-sandbox", sandboxId },
    { kind: "replay-del", sandboxId, path: "/var/lib/cni/results/net-a-net1" },
  ];

  test("name what they change, what undo puts back, and what is done only for leftovers", () => {
    expect(stepWords(plannedSteps({ steps: action }))).toEqual([
      "move the broken file to quarantine: /var/lib/cni/results/cbr0-a-eth0 (undo puts it back)",
      "save its logs and remove it through the runtime",
      "if left, call DEL with the cached configuration: /var/lib/cni/results/net-a-net1",
    ]);
  });

  test("are brief for many findings, and the clean-up after a removal is one of them", () => {
    const move: Step = { kind: "quarantine-file", path: "/var/lib/cni/results/net-a-net1", health: "orphaned" };

    expect(briefSteps({ steps: [...action, move] })).toEqual([
      "move the broken file to quarantine (undo puts it back)",
      "save its logs and remove it through the runtime",
      "clean up what is left (CNI DEL, quarantine)",
    ]);
  });
});
