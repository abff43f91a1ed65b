import { expect, test } from "vitest";
import type { Step } from "../../src/evidence/step.ts";
import { shortAction, shortDone } from "../../src/report/step-words.ts";
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
