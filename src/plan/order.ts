import { dirname } from "node:path/posix";
import { type Finding, podOf } from "../evidence/finding.ts";
import { isKubeletAlive } from "../evidence/pod-presence.ts";
import type { Step } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { KnownPod } from "../node/types/snapshot.ts";
import type { PlannedAction } from "./plan.ts";

/** The order of healing: without a network agent no DEL works, without a CSI plugin no volume. */
export type Rank = "cni-agent" | "csi-node-plugin" | "node-critical" | "rest";

const RANK_ORDER: Readonly<Record<Rank, number>> = {
  "cni-agent": 0,
  "csi-node-plugin": 1,
  "node-critical": 2,
  rest: 3,
};

const CNI_AGENTS =
  /^(?:calico-node|canal|cilium|kube-flannel|flannel|kube-multus|multus|kube-ovn|ovs-ovn|ovn|antrea-agent|weave-net|aws-node|kube-router|azure-cni|istio-cni|linkerd-cni|whereabouts)/;
const CSI_PLUGINS = /(?:^|-)csi(?:-|$)|longhorn-(?:manager|csi)|rbdplugin|cephfsplugin|linstor/;
/** Pods that use a driver's socket, or its storage from anywhere in the cluster. */
const CSI_SIDECARS = /attacher|provisioner|resizer|snapshotter|controller|operator|health-monitor/;
const SYSTEM_NAMESPACES = new Set([
  "kube-system",
  "calico-system",
  "tigera-operator",
  "kube-flannel",
  "longhorn-system",
]);

/**
 * A CSI node plugin is identified by its pod's mounts if the API answered: it registers the driver. Otherwise by the
 * pod's name, because a sandbox has only name, namespace and labels of its pod.
 */
export function rankOf(sandbox: Pick<Sandbox, "pod" | "labels">, csi: KnownPod["csi"]): Rank {
  const names = [sandbox.pod.name, sandbox.labels["k8s-app"] ?? "", sandbox.labels["app"] ?? ""];
  if (names.some((name) => CNI_AGENTS.test(name))) return "cni-agent";
  if (csi?.registers ?? names.some((name) => CSI_PLUGINS.test(name) && !CSI_SIDECARS.test(name)))
    return "csi-node-plugin";
  return SYSTEM_NAMESPACES.has(sandbox.pod.namespace) ? "node-critical" : "rest";
}

/** Attempts of one pod are ordered from the oldest on, as kubelet counts upwards. */
export function compareActions(
  one: { readonly rank: Rank; readonly finding: Finding },
  other: { readonly rank: Rank; readonly finding: Finding },
): number {
  return RANK_ORDER[one.rank] - RANK_ORDER[other.rank] || attemptOf(one.finding) - attemptOf(other.finding);
}

function attemptOf({ subject }: Finding): number {
  return podOf(subject)?.attempt ?? 0;
}

type CsiMounts = { readonly dirs: readonly string[]; readonly registers: boolean };

/** The driver directories that a sandbox's pod mounts, from the API; undefined if unknown or none. */
export function csiOf({ pod }: Pick<Sandbox, "pod">, { snapshot }: NodeView): CsiMounts | undefined {
  if (snapshot.kubernetes.source !== "api") return undefined;
  return snapshot.kubernetes.pods.find(({ uid }) => uid === pod.uid)?.csi;
}

/**
 * Pods that use a driver crash while its socket has no server. If the plugin that serves it is healed in the same run,
 * they wait for the socket first, with a timeout, because another cause may keep it away.
 */
export function afterPluginSockets(actions: readonly PlannedAction[], view: NodeView): readonly PlannedAction[] {
  const missing = new Set(actions.flatMap(({ finding }) => finding.missingSockets ?? []));
  if (missing.size === 0 || !isKubeletAlive(view)) return actions;
  return actions.map((action) => {
    const { subject, missingSockets } = action.finding;
    if (missingSockets !== undefined || subject.type !== "sandbox") return action;
    const { sandbox } = view.about(subject.sandboxId);
    const dirs = (sandbox && csiOf(sandbox, view)?.dirs) ?? [];
    const waits = [...missing]
      .filter((path) => dirs.includes(dirname(path)))
      .map((path): Step => ({ kind: "await-socket", path, optional: true }));
    return waits.length === 0 ? action : { ...action, steps: [...waits, ...action.steps] };
  });
}
