import { describe, expect, test } from "vitest";
import { logPodSourceChanges } from "../../src/agent/cluster-side.ts";
import type { Kubernetes } from "../../src/node/types/snapshot.ts";

const WELL: Kubernetes = {
  source: "api",
  nodeName: "n1",
  pods: [],
  holds: { paused: false, node: false, namespaces: [] },
};
const PARTLY: Kubernetes = { ...WELL, error: "which namespaces to ignore is not known" };
const DOWN: Kubernetes = { source: "kubelet", pods: [], error: "connection refused" };
const HANGING: Kubernetes = { ...DOWN, error: "did not answer in time" };
const ALONE: Kubernetes = { source: "none", error: "connection refused" };
const NO_CLUSTER: Kubernetes = { source: "kubelet", pods: [] };

describe("pod source log", () => {
  test.each<{ readonly what: string; readonly seen: readonly Kubernetes[]; readonly warnings: readonly RegExp[] }>([
    { what: "nothing while the API server answers", seen: [WELL, WELL], warnings: [] },
    {
      what: "an outage once, and its end once",
      seen: [WELL, DOWN, HANGING, DOWN, WELL, WELL],
      warnings: [
        /^pods: API server unavailable; reading them from kubelet: .*refused/,
        /^pods: API server answers again/,
      ],
    },
    {
      what: "an outage that was there from the start",
      seen: [ALONE, ALONE, WELL],
      warnings: [/^pods: API server and kubelet unavailable: .*refused/, /^pods: API server answers again/],
    },
    {
      what: "what the API server forbids",
      seen: [PARTLY, PARTLY],
      warnings: [/^pods: API server answers in part: which namespaces/],
    },
    { what: "nothing on a node without a cluster", seen: [NO_CLUSTER, { source: "none" }, NO_CLUSTER], warnings: [] },
  ])("logs $what", ({ seen, warnings }) => {
    const logged: string[] = [];
    const log = logPodSourceChanges((...parts) => logged.push(parts.join(": ")));

    for (const kubernetes of seen) log(kubernetes);

    expect(logged).toEqual(warnings.map((pattern) => expect.stringMatching(pattern)));
  });
});
