import { describe, expect, test } from "vitest";
import { endedInOrder, endWasLost } from "../../src/evidence/ending.ts";
import { viewOf } from "../../src/evidence/view.ts";
import type { Container, ContainerExit } from "../../src/node/types/runtime.ts";
import { containerOf, FINISHED, idOf, LOST, PATIENT, snapshotOf } from "../support/snapshot-builder.ts";

const KILLED: ContainerExit = { ...FINISHED, exitCode: 137, reason: "Error" };
const LOST_BY_CRIO: ContainerExit = { ...FINISHED, exitCode: -1, reason: "Error", finishedAt: 0n };

function aboutOneWith(...containers: readonly Container[]) {
  return viewOf(snapshotOf({ containers }), PATIENT).about(idOf("a"));
}

describe("end of a container", () => {
  test.each<readonly [string, Partial<Container>, "in order" | "lost" | "unknown"]>([
    ["on its own", { exit: FINISHED }, "in order"],
    ["by a signal", { exit: KILLED }, "in order"],
    ["with 255 of its own", { exit: { ...KILLED, exitCode: 255 } }, "in order"],
    ["while containerd was away", { exit: LOST }, "lost"],
    ["while CRI-O was away", { exit: LOST_BY_CRIO }, "lost"],
    ["in a state that the runtime does not report", { state: "unknown" }, "lost"],
    ["with an unreadable exit", {}, "unknown"],
    ["not at all: it was never started", { state: "created", exit: FINISHED }, "unknown"],
  ])("%s", (_, parts, ending) => {
    const container = containerOf("a", parts);

    expect(endWasLost(container)).toBe(ending === "lost");
    expect(endedInOrder(aboutOneWith(container))).toBe(ending === "in order");
  });

  test.each<readonly [string, readonly Container[]]>([
    ["there is no container", []],
    ["one of two was lost", [containerOf("a", { exit: FINISHED }), containerOf("a", { exit: LOST_BY_CRIO })]],
    ["one of two could not be read", [containerOf("a", { exit: FINISHED }), containerOf("a")]],
  ])("a pod has not ended orderly when %s", (_, containers) => {
    expect(endedInOrder(aboutOneWith(...containers))).toBe(false);
  });
});
