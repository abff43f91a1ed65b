import { globSync, readFileSync, truncateSync } from "node:fs";
import { expect, test } from "vitest";
import { agentOn } from "../../lab/cluster/agent.ts";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import { DRIVER, DRIVER_SOCKET, databaseObjects, driverObjects } from "../../lab/cluster/csi-storage.ts";
import { isReady, type PodObject } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { stateOfSocket } from "../../src/snapshot/csi.ts";
import { cluster, HANG_GUARD_MS, scanOn } from "./lab-cluster.ts";

test(
  "power cut with a torn CNI cache of a CSI node plugin: the agent brings the driver, its sidecar and the volume back",
  async () => {
    const story = await cluster();
    const { node } = story;
    await story.apply(driverObjects(node.name));
    await until("the driver is registered", HANG_GUARD_MS, async () =>
      (await driversOf(story, node)).includes(DRIVER) ? true : undefined,
    );
    await story.apply(databaseObjects(node.name));
    const before = await story.waitForPods(3, isReady);

    await node.powerCut();
    tearCacheOf(node, "zz-node-plugin");
    await node.boot();
    // Until kubelet reports, the API shows what was true before the cut.
    const isOld = startedAmong(before);
    const restarts = restartsOf(before.find(({ metadata }) => metadata.name.startsWith("csi-sidecar-")));
    await until("the sidecar crashes after the boot", HANG_GUARD_MS, async () =>
      restartsOf(await podNamed(story, "csi-sidecar")) > restarts + 1 ? true : undefined,
    );
    const report = await scanOn(node);
    expect(report.findings.map(({ class: id }) => id)).toContain("libcni-result-cache-corrupt");
    expect(report.findings.flatMap(({ blocks }) => blocks)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^pod default\/csi-sidecar-\w+: crash-loops for want of the driver's socket$/),
      ]),
    );

    const agent = await agentOn(node);
    await agent.start();
    await until("the socket is served", HANG_GUARD_MS, async () => {
      const state = await stateOfSocket(node.lab.livePath(DRIVER_SOCKET), AbortSignal.timeout(5000));
      return state === "listening" ? true : undefined;
    });
    await story.waitForPods(3, (pod) => isReady(pod) && !isOld(pod));

    const uids = new Map(before.map(({ metadata }) => [metadata.uid, metadata.name]));
    const replaced = (await story.pods()).filter(({ metadata }) => !uids.has(metadata.uid));
    expect(replaced.map(({ metadata }) => metadata.name.replace(/-\w+$/, ""))).toEqual(["csi-sidecar"]);
    await story.waitForCondition(node, "GhostSandboxes", ({ status }) => status === "False");
  },
  HANG_GUARD_MS,
);

async function driversOf({ api }: Cluster, { name }: ClusterNode): Promise<readonly string[]> {
  const path = `/apis/storage.k8s.io/v1/csinodes/${name}`;
  const { spec } = await api.get<{ readonly spec: { readonly drivers?: readonly { readonly name: string }[] } }>(path);
  return (spec.drivers ?? []).map((driver) => driver.name);
}

async function podNamed(story: Cluster, prefix: string): Promise<PodObject | undefined> {
  return (await story.pods()).find(
    ({ metadata }) => metadata.name.startsWith(`${prefix}-`) && !metadata.deletionTimestamp,
  );
}

function restartsOf(pod: PodObject | undefined): number {
  return pod?.status.containerStatuses?.[0]?.restartCount ?? 0;
}

/** Whether a pod's status still names a container of one of these pods. */
function startedAmong(pods: readonly PodObject[]): (pod: PodObject) => boolean {
  const containers = (pod: PodObject) => pod.status.containerStatuses?.flatMap(({ containerID }) => containerID ?? []);
  const old = new Set(pods.flatMap((pod) => containers(pod) ?? []));
  return (pod) => containers(pod)?.some((id) => old.has(id)) ?? false;
}

function tearCacheOf({ lab }: ClusterNode, prefix: string): void {
  const caches = globSync(lab.path("/var/lib/cni/results/cbr0-*"));
  const [cache, ...more] = caches.filter((file) => readFileSync(file, "utf8").includes(`"${prefix}-`));
  expect(more).toEqual([]);
  truncateSync(cache ?? "");
}
