import { describe, expect, test } from "vitest";
import { nodeFacts, sourcesOf } from "../../../src/agent/page/sources.ts";
import type { WireReport } from "../../../src/agent/page/wire.ts";
import type { NodeCounts } from "../../../src/agent/state/state.ts";
import type { NodeReport } from "../../../src/report/node-report.ts";
import { NO_COUNTS, scanOf } from "../metrics/agent-state.ts";
import { healthyState, onTheWire } from "./agent-states.ts";

function reported(parts: Partial<NodeReport>): WireReport {
  const report = onTheWire(healthyState({ scan: scanOf({ report: parts }) })).scan?.report;
  if (report === undefined) throw new Error("the state was made with a scan");
  return report;
}

describe("sources", () => {
  const unreached = { name: "", version: "", endpoint: "/run/c.sock", reachable: false };
  const stalled = { stalls: 2, hungTasks: 0, netdeviceWaits: 1, sinceBoot: true };
  test.each([
    ["a runtime that answers", {}, "runtime", "read", "containerd 2.3.4 at unix:///run/containerd/containerd.sock"],
    ["a runtime that does not", { runtime: unreached }, "runtime", "failed", "not reached at /run/c.sock"],
    ["the API", { kubernetes: { source: "api" as const } }, "kubernetes", "read", "the API server"],
    [
      "the kubelet instead of the API",
      { kubernetes: { source: "kubelet" as const, error: "refused" } },
      "kubernetes",
      "partly",
      "kubelet's pod directories instead of the API server: refused",
    ],
    [
      "no source",
      { kubernetes: { source: "none" as const } },
      "kubernetes",
      "not used",
      "pods not checked against Kubernetes",
    ],
    [
      "no source that answers",
      { kubernetes: { source: "none" as const, error: "timeout" } },
      "kubernetes",
      "failed",
      "pods not checked against Kubernetes: timeout",
    ],
    ["the kernel", { kernel: stalled }, "kernel log", "read", "2 stalls, 1 wait for a network device since boot"],
  ])("show %s", (_name, parts, name, health, detail) => {
    expect(sourcesOf(reported(parts))).toContainEqual({ name, health, detail });
  });

  test("show each problem with the next step", () => {
    const problem = { source: "cni", problem: "permission denied", next: "run as root" };

    expect(sourcesOf(reported({ problems: [problem] }))).toContainEqual({
      name: "cni",
      health: "failed",
      detail: "permission denied",
      next: "run as root",
    });
  });
});

describe("facts about the node", () => {
  test("leave out what is zero", () => {
    const names = nodeFacts(reported({}), NO_COUNTS).map(({ name }) => name);

    expect(names).toEqual(["Sandboxes", "Not ready, kept on purpose"]);
  });

  test("show crash loops, leaks and the addresses of each network", () => {
    const leases: NodeCounts["leases"] = [
      { network: "cbr0", state: "used", count: 12 },
      { network: "cbr0", state: "leaked", count: 0 },
      { network: "cbr0", state: "free", count: 241 },
      { network: "quiet", state: "leaked", count: 0 },
    ];
    const report = reported({ crashLoops: { pods: 1, restartsSinceBoot: 12 } });

    expect(nodeFacts(report, { ...NO_COUNTS, leases, leftoverContainers: 3 }).slice(2)).toEqual([
      { name: "Crash loops", value: "1 pod, 12 restarts since boot" },
      { name: "Leftover containers", value: "3" },
      { name: "Addresses of cbr0", value: "12 used, 241 free" },
    ]);
  });
});
