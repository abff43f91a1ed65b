import { globSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { containersOf, isReady, names, type PodObject, podObjects } from "../../lab/cluster/objects.ts";
import { killedMonitors } from "../../lab/faults/killed-monitors.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { containerId, podUid, sandboxId } from "../../src/snapshot/ids.ts";
import { cluster, HANG_GUARD_MS, scanOn } from "../cluster/lab-cluster.ts";

const PODS = names("web", 6);
const CALL = { timeoutMs: 60_000 };

async function withAgent(): Promise<{ readonly story: Cluster; readonly agent: Service }> {
  const story = await cluster({ runtime: "crio" });
  await story.apply(podObjects(PODS, story.node.name));
  await story.waitForPods(PODS.length, isReady);
  const agent = await agentOn(story.node, { agent: { scanEvery: "5s", defaults: { minAge: "5s" } } });
  await agent.start();
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  return { story, agent };
}

async function healthy(story: Cluster): Promise<void> {
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  const report = await until("the scan is healthy", HANG_GUARD_MS, async () => {
    const now = await scanOn(story.node);
    return now.verdict === "healthy" ? now : undefined;
  });
  expect(report).toMatchObject({ findings: [], runtime: { name: "cri-o" }, kubernetes: { source: "api" } });
}

function hasRestarted(pod: PodObject): boolean {
  return isReady(pod) && (pod.status.containerStatuses?.[0]?.restartCount ?? 0) > 0;
}

test(
  "after a power cut of a node with CRI-O and torn CNI caches, every pod runs again and the node is healthy",
  async () => {
    const { story, agent } = await withAgent();
    const { node } = story;

    await node.powerCut();
    const caches = globSync(node.lab.path("/var/lib/cni/results/cbr0-*"));
    expect(caches).toHaveLength(PODS.length);
    for (const file of caches.slice(0, 2)) truncateSync(file);
    await node.boot(() => agent.start());

    await story.waitForPods(PODS.length, hasRestarted);
    await healthy(story);
  },
  HANG_GUARD_MS,
);

test(
  "after crio was killed with the monitors of two pods, those run again and the others are not touched",
  async () => {
    const { story } = await withAgent();
    const { lab } = story.node;
    const before = await story.pods();
    const killed = ["web-1", "web-4"];
    const sandboxes = await lab.cri.listPodSandbox(undefined, CALL);
    const containers = await lab.cri.listContainers(undefined, CALL);
    const pods = sandboxes
      .filter(({ metadata }) => killed.includes(metadata?.name ?? ""))
      .map(({ id, metadata }) => ({
        ref: { namespace: "default", name: metadata?.name ?? "", uid: podUid(metadata?.uid ?? ""), attempt: 0 },
        reservedName: "",
        sandboxId: sandboxId(id),
        containerIds: containers.filter(({ podSandboxId }) => podSandboxId === id).map((one) => containerId(one.id)),
      }));

    await killedMonitors(lab, pods);
    await lab.startRuntime();

    const after = await until("the killed pods run again", HANG_GUARD_MS, async () => {
      const now = await story.pods();
      return now.filter(hasRestarted).length === killed.length && now.every(isReady) ? now : undefined;
    });
    const others = PODS.filter((name) => !killed.includes(name));
    expect(containersOf(after, others)).toEqual(containersOf(before, others));
    await healthy(story);
  },
  HANG_GUARD_MS,
);
