import { globSync, readFileSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import { type CgroupVersion, cgroupWithLimits } from "../../lab/cgroup.ts";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import { containersOf, isReady, names, type PodObject, podObjects } from "../../lab/cluster/objects.ts";
import { killedMonitors } from "../../lab/faults/killed-monitors.ts";
import type { LabNode } from "../../lab/node.ts";
import { until } from "../../lab/poll.ts";
import type { Service } from "../../lab/service.ts";
import { containerId, podUid, sandboxId } from "../../src/node/types/ids.ts";
import { cluster, HANG_GUARD_MS, scanOn, WAIT_MS } from "../cluster/lab-cluster.ts";
import { agentLog, isHealedByAgent } from "../cluster/pod-ghost.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { healthyScan } from "../support/healthy-scan.ts";

const PODS = names("web", 6);
const CALL = { timeoutMs: 60_000 };

async function withAgent(cgroup?: CgroupVersion): Promise<{ readonly story: Cluster; readonly agent: Service }> {
  const story = await cluster({ runtime: "crio", cgroup });
  const pods = podObjects(PODS, story.node.name) as readonly { readonly spec: object }[];
  // Without a PID namespace to keep, CRI-O gives a sandbox no process of its own, and it cannot die.
  await story.apply(pods.map((pod) => ({ ...pod, spec: { ...pod.spec, shareProcessNamespace: true } })));
  await story.waitForPods(PODS.length, isReady);
  const agent = await agentOn(story.node, { agent: { scanEvery: "5s", defaults: { minAge: "5s" } } });
  await agent.start();
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  return { story, agent };
}

async function healthy(story: Cluster): Promise<void> {
  await story.waitForCondition(story.node, "GhostSandboxes", ({ status }) => status === "False");
  const report = await healthyScan(() => scanOn(story.node));
  expect(report).toMatchObject({ findings: [], runtime: { name: "cri-o" }, kubernetes: { source: "api" } });
}

function hasRestarted(pod: PodObject): boolean {
  return isReady(pod) && (pod.status.containerStatuses?.[0]?.restartCount ?? 0) > 0;
}

test(
  "after a power cut of a node with CRI-O and torn CNI caches, every pod runs again, the node is healthy, and the agent had nothing to change",
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
    // CRI-O has removed the old sandboxes itself; their files it leaves behind.
    const listed = (await node.lab.cri.listPodSandbox(undefined, CALL)).map(({ id }) => id);
    const kept = [...cachedIds(node.lab), ...leasedIds(node.lab)].filter((id) => !listed.includes(id));
    expect(kept).toEqual([]);
    expect(JSON.parse(await node.lab.check([UNGHOST, "history", "-o", "json"]))).toMatchObject({ entries: [] });
  },
  HANG_GUARD_MS,
);

test(
  "after crio was killed with the monitors of two pods while kubelet was down, the agent heals those, they run again, and the others are not touched",
  async () => {
    const { story } = await withAgent(cgroupWithLimits());
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

    // A kubelet that runs replaces them before anybody else has to.
    await story.node.kubelet.end("TERM");
    await killedMonitors(lab, pods);
    await lab.startRuntime();
    for (const { sandboxId: id } of pods) {
      const what = () =>
        `the agent takes ${id} for a victim of the crash; it last logged ${agentLog(story.node).slice(-1000)}`;
      await until(what, WAIT_MS, () => isHealedByAgent(story.node, id) || undefined);
    }
    await story.node.kubelet.start();

    const after = await until("the killed pods run again", WAIT_MS, async () => {
      const now = await story.pods();
      return now.filter(hasRestarted).length === killed.length && now.every(isReady) ? now : undefined;
    });
    const others = PODS.filter((name) => !killed.includes(name));
    expect(containersOf(after, others)).toEqual(containersOf(before, others));
    await healthy(story);
  },
  HANG_GUARD_MS,
);

/** The sandboxes of which CNI results are cached. */
function cachedIds(node: LabNode): readonly string[] {
  return globSync(node.path("/var/lib/cni/results/cbr0-*")).flatMap(
    (file) => /cbr0-([0-9a-f]{64})/.exec(file)?.[1] ?? [],
  );
}

/** The sandboxes that have an address. */
function leasedIds(node: LabNode): readonly string[] {
  const leases = globSync(node.path("/var/lib/cni/networks/cbr0/10.*"));
  return leases.flatMap((file) => /^[0-9a-f]{64}/.exec(readFileSync(file, "utf8"))?.[0] ?? []);
}
