import { describe, expect, test } from "vitest";
import type { Finding } from "../../src/evidence/finding.ts";
import type { Step } from "../../src/evidence/step.ts";
import { sandboxId } from "../../src/node/types/ids.ts";
import type { PlannedAction } from "../../src/plan/plan.ts";
import { capped } from "../../src/plan/policy.ts";

const REMOVE: Step = { kind: "remove-sandbox", sandboxId: sandboxId("a".repeat(64)) };
const MOVE: Step = { kind: "quarantine-file", path: "/var/lib/cni/results/x", health: "orphaned" };

function action(lane: string, ...steps: readonly Step[]): PlannedAction {
  return {
    finding: { id: lane } as Finding,
    rank: "rest",
    steps,
    reason: { code: "pod-not-on-node", text: "its pod is gone from this node" },
    lane,
  };
}

function lanes(actions: readonly PlannedAction[]): readonly string[] {
  return actions.map(({ lane }) => lane);
}

describe("cap per run", () => {
  test("keeps the first N actions, in order", () => {
    const { actions, overCap } = capped([action("a", REMOVE), action("b", MOVE, REMOVE), action("c", REMOVE)], 2);
    expect([lanes(actions), lanes(overCap)]).toEqual([["a", "b"], ["c"]]);
  });

  test("does not count leases that are only moved", () => {
    const drop: Step = { kind: "drop-empty-lease", path: "/x/10.0.0.1", networkDir: "/x" };
    expect(lanes(capped([action("a", drop), action("b", REMOVE)], 1).actions)).toEqual(["a", "b"]);
  });

  test("does not count files that are only moved", () => {
    const { actions, overCap } = capped(
      [action("a", MOVE), action("b", REMOVE), action("c", MOVE), action("d", REMOVE)],
      1,
    );
    expect([lanes(actions), lanes(overCap)]).toEqual([["a", "b", "c"], ["d"]]);
  });
});
