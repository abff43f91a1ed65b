import { valueOr } from "../snapshot/source.ts";
import type { Snapshot } from "../snapshot/types.ts";

/** Plugins that only pass the request on to a pod of theirs, or to the API server behind it. */
const AGENT_PLUGINS = new Set([
  "calico",
  "cilium-cni",
  "kube-ovn",
  "antrea",
  "ovn-k8s-cni-overlay",
  "aws-cni",
  "azure-vnet",
  "multus-shim",
  "weave-net",
]);

/** The plugin of this node's network that cannot work before its agent runs, if there is one. */
export function needsAgent(snapshot: Snapshot): string | undefined {
  const plugins = valueOr(snapshot.cni.conf, undefined)?.plugins ?? [];
  return plugins.find(({ type }) => AGENT_PLUGINS.has(type))?.type;
}
