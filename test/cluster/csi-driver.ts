import { globSync, readFileSync, truncateSync } from "node:fs";
import type { Cluster } from "../../lab/cluster/cluster.ts";
import type { ClusterNode } from "../../lab/cluster/cluster-node.ts";
import {
  DRIVER,
  DRIVER_SOCKET,
  databaseObjects,
  driverObjects,
  sidecarObjects,
} from "../../lab/cluster/csi-storage.ts";
import { isReady, type PodObject } from "../../lab/cluster/objects.ts";
import { until } from "../../lab/poll.ts";
import { stateOfSocket } from "../../src/node/csi.ts";
import { WAIT_MS } from "./lab-cluster.ts";

/** A CSI node plugin, its sidecars and a database with a volume; returns the pods once they run. */
export async function startDriver(story: Cluster, sidecars?: readonly string[]): Promise<readonly PodObject[]> {
  const { node } = story;
  await story.apply(driverObjects(node.name));
  await until("the driver is registered", WAIT_MS, async () =>
    (await driversOf(story, node)).includes(DRIVER) ? true : undefined,
  );
  // Not before: the sidecar must not have crashed before the power cut according to the API.
  await story.apply([...sidecarObjects(node.name, sidecars), ...databaseObjects(node.name)]);
  return await story.waitForPods(2 + (sidecars?.length ?? 1), isReady);
}

async function driversOf({ api }: Cluster, { name }: ClusterNode): Promise<readonly string[]> {
  const path = `/apis/storage.k8s.io/v1/csinodes/${name}`;
  const { spec } = await api.get<{ readonly spec: { readonly drivers?: readonly { readonly name: string }[] } }>(path);
  return (spec.drivers ?? []).map((driver) => driver.name);
}

export async function socketServed({ lab }: ClusterNode): Promise<void> {
  await until("the driver's socket is served", WAIT_MS, async () => {
    const state = await stateOfSocket(lab.livePath(DRIVER_SOCKET), AbortSignal.timeout(5000));
    return state === "listening" ? true : undefined;
  });
}

export async function podNamed(story: Cluster, prefix: string): Promise<PodObject | undefined> {
  return (await story.pods()).find(
    ({ metadata }) => metadata.name.startsWith(`${prefix}-`) && !metadata.deletionTimestamp,
  );
}

export function restartsOf(pod: PodObject | undefined): number {
  return pod?.status.containerStatuses?.[0]?.restartCount ?? 0;
}

/**
 * Whether a pod's status still has a container of one of these pods: until kubelet reports, the API shows the old
 * state.
 */
export function startedAmong(pods: readonly PodObject[]): (pod: PodObject) => boolean {
  const containers = (pod: PodObject) => pod.status.containerStatuses?.flatMap(({ containerID }) => containerID ?? []);
  const old = new Set(pods.flatMap((pod) => containers(pod) ?? []));
  return (pod) => containers(pod)?.some((id) => old.has(id)) ?? false;
}

/** Truncates the libcni result of the pod with this prefix, like a power cut. */
export function tearCacheOf({ lab }: ClusterNode, prefix: string): void {
  const caches = globSync(lab.path("/var/lib/cni/results/cbr0-*"));
  const [cache, ...more] = caches.filter((file) => readFileSync(file, "utf8").includes(`"${prefix}-`));
  if (cache === undefined || more.length > 0)
    throw new Error(`${prefix}: ${more.length + 1} of ${caches.length} caches`);
  truncateSync(cache);
}

/** Names of the pods that were deleted and created again, without their controller's suffix. */
export function replacedAmong(before: readonly PodObject[], after: readonly PodObject[]): readonly string[] {
  const uids = new Set(before.map(({ metadata }) => metadata.uid));
  return after
    .filter(({ metadata }) => !uids.has(metadata.uid))
    .map(({ metadata }) => metadata.name.replace(/-\w+$/, ""));
}
