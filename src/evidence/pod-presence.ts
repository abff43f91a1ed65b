import { valueOr } from "../host/source.ts";
import type { PodRef } from "../snapshot/ids.ts";
import type { Holds } from "../snapshot/types/kubernetes.ts";
import type { Sandbox } from "../snapshot/types/runtime.ts";
import type { NodeView } from "./view.ts";

/** Whether Kubernetes knows the sandbox's pod; `unasked` without an API server and kubelet directories. */
type PodPresence = "known" | "gone" | "unasked";

export function podPresence(sandbox: Sandbox, view: NodeView): PodPresence {
  const { pod, createdAt } = sandbox;
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return "unasked";
  if (kubernetes.pods.some(({ uid }) => uid === pod.uid)) return "known";
  // Only the two together know of every static pod: a mirror may be missing, and so may a directory.
  const isHalfAsked = kubernetes.source === "kubelet" || kubernetes.kubeletUnread === true;
  if (isHalfAsked && isStatic(sandbox)) return "unasked";
  // An API server answers from its cache, which may not have a pod that was created a moment ago.
  return isSettled(new Date(Number(createdAt / 1_000_000n)), view) ? "gone" : "known";
}

/** The phase of a pod that Kubernetes will never start again, however its containers ended. */
export function finishedPhase({ pod }: Sandbox, { snapshot }: NodeView): "Succeeded" | "Failed" | undefined {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return undefined;
  const known = kubernetes.pods.find(({ uid }) => uid === pod.uid);
  // The logs of one that is being deleted are no longer needed.
  if (known === undefined || known.terminating === true) return undefined;
  return known.phase === "Succeeded" || known.phase === "Failed" ? known.phase : undefined;
}

/** Somebody has deleted its pod, and kubelet has not finished with it. */
export function isTerminating({ pod }: Pick<Sandbox, "pod">, { snapshot }: NodeView): boolean {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return false;
  return kubernetes.pods.some(({ uid, terminating }) => uid === pod.uid && terminating === true);
}

/** Its pod comes from a manifest on the node, not from the API. */
export function isStatic({ annotations }: Pick<Sandbox, "annotations">): boolean {
  const source = annotations["kubernetes.io/config.source"];
  return source === "file" || source === "http";
}

/** A kubelet process runs on the node: whatever it can finish on its own is its own. */
export function isKubeletAlive({ snapshot }: Pick<NodeView, "snapshot">): boolean {
  return valueOr(snapshot.processes, undefined)?.kubelet !== undefined;
}

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

/** Between the first trace of a creation and its record lie milliseconds, and under heavy load seconds. */
const SETTLE_MS = 30_000;

/** Old enough that it cannot be a creation which has not got to its record yet. `--min-age 0s` waives the wait. */
export function isSettled(since: Date, { snapshot, policy }: NodeView): boolean {
  return snapshot.observedAt.getTime() - since.getTime() >= Math.min(SETTLE_MS, policy.minAgeMs);
}
