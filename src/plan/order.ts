import type { Finding } from "../evidence/finding.ts";
import type { KnownPod, Sandbox } from "../snapshot/types.ts";

/** What must be well before others can be: without a network agent no DEL works, without a CSI plugin no volume. */
export type Rank = "cni-agent" | "csi-node-plugin" | "node-critical" | "rest";

const RANKS: readonly Rank[] = ["cni-agent", "csi-node-plugin", "node-critical", "rest"];

const CNI_AGENTS =
  /^(?:calico-node|canal|cilium|kube-flannel|flannel|kube-multus|multus|kube-ovn|ovs-ovn|ovn|antrea-agent|weave-net|aws-node|kube-router|azure-cni|istio-cni|linkerd-cni|whereabouts)/;
const CSI_PLUGINS = /(?:^|-)csi(?:-|$)|longhorn-(?:manager|csi)|rbdplugin|cephfsplugin|linstor/;
/** What talks to a driver over its socket, or to its storage from anywhere in the cluster. */
const CSI_SIDECARS = /attacher|provisioner|resizer|snapshotter|controller|operator|health-monitor/;
const SYSTEM_NAMESPACES = new Set([
  "kube-system",
  "calico-system",
  "tigera-operator",
  "kube-flannel",
  "longhorn-system",
]);

/**
 * A CSI node plugin is known by what its pod mounts, where the API has told: it registers the driver. Otherwise by the
 * pod's name: a sandbox carries no more of its pod than name, namespace and labels.
 */
export function rankOf(sandbox: Pick<Sandbox, "pod" | "labels">, csi: KnownPod["csi"]): Rank {
  const names = [sandbox.pod.name, sandbox.labels["k8s-app"] ?? "", sandbox.labels["app"] ?? ""];
  if (names.some((name) => CNI_AGENTS.test(name))) return "cni-agent";
  if (csi?.registers ?? names.some((name) => CSI_PLUGINS.test(name) && !CSI_SIDECARS.test(name)))
    return "csi-node-plugin";
  return SYSTEM_NAMESPACES.has(sandbox.pod.namespace) ? "node-critical" : "rest";
}

/** Attempts of one pod from the oldest on: kubelet counts upwards. */
export function compareActions(
  one: { readonly rank: Rank; readonly finding: Finding },
  other: { readonly rank: Rank; readonly finding: Finding },
): number {
  return RANKS.indexOf(one.rank) - RANKS.indexOf(other.rank) || attemptOf(one.finding) - attemptOf(other.finding);
}

function attemptOf({ subject }: Finding): number {
  return "pod" in subject ? (subject.pod?.attempt ?? 0) : 0;
}
