import { describe, expect, test } from "vitest";
import { removeCondition } from "../../../src/agent/kube/withdraw.ts";
import { openFleetGate } from "../../../src/agent/limits/gate.ts";
import { ENDING } from "../limits/actions.ts";
import { sighting } from "../page/agent-states.ts";
import { AGENT_ROLES, FLEET_RULES, isAllowed, RULES } from "./agent-roles.ts";
import { shownAgent } from "./shown-agent.ts";

describe("agent role", () => {
  test("allows every request for publishing and for the fleet", async () => {
    const { time, cluster, store, scanned, show } = shownAgent();
    const policy = { slots: 1, namespace: "unghost", breakerShare: 0.3, breakerLeast: 3 };
    const common = { openCluster: cluster.open, timing: time.timing(), warn: () => undefined };
    for (let start = 0; start < 2; start++) {
      const face = show();
      const gate = openFleetGate({ ...common, nodeName: () => "n1", policy: () => policy, onBreaker: () => undefined });
      scanned([sighting()]);
      store.publish({ kind: "detected", sighting: sighting() });
      const answer = await gate.ask([ENDING]);
      await time.pass(400_000);
      if (answer.kind === "go") await answer.release();
      await Promise.all([face.close(), gate.close()]);
    }
    await removeCondition({ openCluster: cluster.open, name: "n1", hostRoot: "/" });

    expect(cluster.requests.filter((request) => !isAllowed(request))).toEqual([]);
    expect(new Set(cluster.requests.map((request) => request.split(" ")[0]))).toEqual(
      new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]),
    );
  });

  test("has no wildcard, and a reason for each rule", () => {
    expect(
      [...RULES, ...FLEET_RULES].flatMap((rule) => [...rule.apiGroups, ...rule.resources, ...rule.verbs]),
    ).not.toContain("*");
    const lines = AGENT_ROLES.split("\n");
    const unexplained = lines.filter((line, index) => /^ {2}- apiGroups/.test(line) && !isExplained(lines, index));
    expect(unexplained).toEqual([]);
  });
});

/** By a comment above it, or above the previous rule if both have the same purpose. */
function isExplained(lines: readonly string[], index: number): boolean {
  const before = lines.slice(Math.max(0, index - 4), index);
  return before.some((line) => line.trim().startsWith("#"));
}
