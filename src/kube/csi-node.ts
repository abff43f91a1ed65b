import * as v from "valibot";
import type { Api } from "./api.ts";
import type { ApiPod } from "./cluster-facts.ts";
import { KubeError } from "./kube-error.ts";

const CsiNodeSchema = v.object({
  spec: v.object({ drivers: v.nullish(v.array(v.object({ name: v.string() }))) }),
});

/** The CSI drivers in the node's CSINode object. */
export async function readCsiDrivers(api: Api, node: string): Promise<readonly string[]> {
  const path = `/apis/storage.k8s.io/v1/csinodes/${encodeURIComponent(node)}`;
  const result = v.safeParse(CsiNodeSchema, await api.get(`${path}?resourceVersion=0`));
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no CSINode`);
  return (result.output.spec.drivers ?? []).map(({ name }) => name);
}

/**
 * Pods that mount a driver's directory like its node plugin, without a sign that they register the driver: a plugin may
 * register it without a sidecar of that name and through a mount of kubelet's whole directory.
 */
export function mayBePlugins(pods: readonly ApiPod[]): readonly ApiPod[] {
  const claimed = new Set(pods.flatMap(({ csi }) => (csi?.registers === true ? csi.dirs : [])));
  return pods.filter(
    ({ csi, controller }) => controller === "DaemonSet" && csi?.dirs.some((dir) => !claimed.has(dir)) === true,
  );
}

/** Marks pods as node plugins whose driver is registered here and which no other pod registers. */
export function withPlugins(pods: readonly ApiPod[], drivers: readonly string[]): readonly ApiPod[] {
  const candidates = new Set(mayBePlugins(pods));
  return pods.map((pod) => {
    const { csi } = pod;
    if (csi === undefined || !candidates.has(pod)) return pod;
    const isPlugin = csi.dirs.some((dir) => drivers.includes(dir.slice(dir.lastIndexOf("/") + 1)));
    return isPlugin ? { ...pod, csi: { ...csi, registers: true } } : pod;
  });
}
