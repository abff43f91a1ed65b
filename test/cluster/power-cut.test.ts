import { globSync, readFileSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { isReady, names, podObjects, runsAgain } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { containerdRelease, type KubernetesVersion, type RuntimeVersion } from "../../lab/runtimes.ts";
import { cluster, HANG_GUARD_MS, scanOn, WAIT_MS } from "./lab-cluster.ts";

const PODS = names("web", 20);
const TORN = 4;

const cases: readonly { readonly runtime: RuntimeVersion; readonly kubernetes: KubernetesVersion }[] = [
  { runtime: "1.6", kubernetes: "1.36.4" },
  { runtime: "2.3", kubernetes: "1.36.4" },
  { runtime: "2.4", kubernetes: "1.37.1" },
];

test.each(cases)(
  "power cut with 20 pods and 4 torn CNI caches: the agent restores every pod and keeps all logs (containerd $runtime, Kubernetes $kubernetes)",
  async ({ runtime, kubernetes }) => {
    const story = await cluster({ runtime, kubernetes });
    const { node } = story;
    await story.apply(podObjects(PODS, node.name));
    await story.waitForPods(PODS.length, isReady);
    const agent = await agentOn(node);
    await agent.start();
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");

    await node.powerCut();
    const torn = tearCaches(node);
    await node.boot(() => agent.start());
    await story.waitForPods(PODS.length, runsAgain);

    for (const pod of ["web-0", "web-7", "web-19"]) {
      expect(await story.kubectl("logs", pod)).toBe(`${pod} says hello\n`);
      expect(await story.kubectl("logs", "--previous", pod)).toBe(`${pod} says hello\n`);
    }
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
    const report = await scanOn(node);
    expect(report).toMatchObject({ verdict: "healthy", findings: [], kubernetes: { source: "api" } });
    // containerd 1.6 cannot stop a sandbox with a torn cache; 2.3 can, and kubelet needs no help.
    if (containerdRelease(runtime).corruptResultBlocks) await haveEvents(story, torn);
    expect(torn).toEqual(expect.arrayContaining([...(await healedPods(story))]));
  },
  HANG_GUARD_MS,
);

/** Tears files like a journaling file system that were written shortly before the cut. Returns their pods. */
function tearCaches({ lab }: ClusterNode): readonly string[] {
  const caches = globSync(lab.path("/var/lib/cni/results/cbr0-*"));
  expect(caches).toHaveLength(PODS.length);
  const torn = caches.slice(0, TORN).map((file) => {
    const [, pod = ""] = /"K8S_POD_NAME",\s*"([^"]+)"/.exec(readFileSync(file, "utf8")) ?? [];
    truncateSync(file);
    return pod;
  });
  return torn.toSorted();
}

/** The agent publishes its events after the heal. */
async function haveEvents(story: Cluster, pods: readonly string[]): Promise<void> {
  await until(`${pods.join(", ")} have an event of their heal`, WAIT_MS, async () => {
    const healed = await healedPods(story);
    return pods.every((pod) => healed.includes(pod)) ? true : undefined;
  });
}

async function healedPods(story: Cluster): Promise<readonly string[]> {
  const selector = "--field-selector=reason=GhostHealed,involvedObject.kind=Pod";
  const printed = await story.kubectl("get", "events", selector, "-o=jsonpath={.items[*].involvedObject.name}");
  return [...new Set(printed.split(" ").filter(Boolean))].toSorted();
}
