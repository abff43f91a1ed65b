import type { PodRef } from "../snapshot/ids.ts";
import type { Holds } from "../snapshot/types.ts";
import type { NodeView } from "./view.ts";

/** Whether somebody marked the pod, its namespace or the node in the cluster, for unghost to keep its hands off. */
export function isHeldInCluster({ uid, namespace }: Pick<PodRef, "uid" | "namespace">, view: NodeView): boolean {
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return false;
  if (kubernetes.source === "api" && (kubernetes.holds.node || kubernetes.holds.namespaces.includes(namespace)))
    return true;
  return kubernetes.pods.some((pod) => pod.ignored === true && pod.uid === uid);
}

/** What holds for everything on the node, where the cluster could be asked. */
export function nodeHolds({ snapshot }: NodeView): Pick<Holds, "paused" | "node"> {
  return snapshot.kubernetes.source === "api" ? snapshot.kubernetes.holds : { paused: false, node: false };
}
