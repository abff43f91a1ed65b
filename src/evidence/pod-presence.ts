import { valueOr } from "../host/source.ts";
import { isSamePod, type NamedPod, type PodRef } from "../node/types/ids.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { Holds } from "../node/types/snapshot.ts";
import type { NodeView } from "./view.ts";

/** Whether Kubernetes has the sandbox's pod; `unasked` without an API server and kubelet directories. */
type PodPresence = "known" | "gone" | "unasked";

export function podPresence(sandbox: Sandbox, view: NodeView): PodPresence {
  const { pod, createdAt } = sandbox;
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return "unasked";
  if (kubernetes.pods.some(({ uid }) => uid === pod.uid)) return "known";
  // Only API and kubelet together have every static pod: a mirror pod or a directory may be missing.
  const isHalfAsked = kubernetes.source === "kubelet" || kubernetes.kubeletUnread === true;
  if (isHalfAsked && isStatic(sandbox)) return "unasked";
  // The API server's cache may not have a pod that was created a moment ago.
  return isSettled(new Date(Number(createdAt / 1_000_000n)), view) ? "gone" : "known";
}

/** The true reason why neither API server nor kubelet answered for a pod. */
export function whyUnasked({ snapshot: { kubernetes } }: Pick<NodeView, "snapshot">): string {
  if (kubernetes.source !== "none")
    return "kubelet and API server were not both read, which only together know every static pod";
  if (kubernetes.unused === true) return "Kubernetes is not asked (--no-kube)";
  if (kubernetes.error !== undefined) return `Kubernetes could not be asked: ${kubernetes.error}`;
  return "this node has neither credentials for an API server nor kubelet's directories";
}

/** The final phase of a pod that Kubernetes will never start again, however its containers ended. */
export function finishedPhase({ pod }: Sandbox, { snapshot }: NodeView): "Succeeded" | "Failed" | undefined {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return undefined;
  const known = kubernetes.pods.find(({ uid }) => uid === pod.uid);
  // The logs of a pod that is being deleted are no longer needed.
  if (known === undefined || known.terminating === true) return undefined;
  return known.phase === "Succeeded" || known.phase === "Failed" ? known.phase : undefined;
}

/** The pod was deleted, and kubelet has not finished with it. */
export function isTerminating({ pod }: Pick<Sandbox, "pod">, { snapshot }: NodeView): boolean {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return false;
  return kubernetes.pods.some(({ uid, terminating }) => uid === pod.uid && terminating === true);
}

/** Whether the pod was deleted: its deletion waits for kubelet, or it is gone. Only the API server lists every pod. */
export function deletionOf(pod: NamedPod, { snapshot }: NodeView): "terminating" | "gone" | undefined {
  const { kubernetes } = snapshot;
  if (kubernetes.source === "none") return undefined;
  const known = kubernetes.pods.find(
    ({ namespace = "", name = "", uid, objectUid }) =>
      isSamePod({ namespace, name, uid }, pod) || (objectUid !== undefined && objectUid === pod.uid),
  );
  if (known !== undefined) return known.terminating === true ? "terminating" : undefined;
  return kubernetes.source === "api" && kubernetes.kubeletUnread !== true ? "gone" : undefined;
}

/** The pod comes from a manifest on the node, not from the API. */
export function isStatic({ annotations }: Pick<Sandbox, "annotations">): boolean {
  const source = annotations["kubernetes.io/config.source"];
  return source === "file" || source === "http";
}

/** A kubelet process runs on the node: unghost leaves to it what it can finish. */
export function isKubeletAlive({ snapshot }: Pick<NodeView, "snapshot">): boolean {
  return valueOr(snapshot.processes, undefined)?.kubelet !== undefined;
}

/** Since when it runs, by the monotonic clock; -1 without one. */
export function kubeletUpMs({ snapshot: { processes, boot } }: Pick<NodeView, "snapshot">): number {
  const started = valueOr(processes, undefined)?.kubelet?.startedSecondsAfterBoot;
  if (started === undefined || boot.status !== "read") return -1;
  return (boot.value.uptimeSeconds - started) * 1000;
}

/** Whether the pod, its namespace or the node is annotated so that unghost does not touch it. */
export function isHeldInCluster({ uid, namespace }: Pick<PodRef, "uid" | "namespace">, view: NodeView): boolean {
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return false;
  if (kubernetes.source === "api" && (kubernetes.holds.node || kubernetes.holds.namespaces.includes(namespace)))
    return true;
  return kubernetes.pods.some((pod) => pod.ignored === true && pod.uid === uid);
}

/** Annotations that apply to the whole node, if the cluster could be read. */
export function nodeHolds({ snapshot }: NodeView): Pick<Holds, "paused" | "node"> {
  return snapshot.kubernetes.source === "api" ? snapshot.kubernetes.holds : { paused: false, node: false };
}

/** A record follows the first trace of a creation within milliseconds, and within seconds under heavy load. */
const SETTLE_MS = 30_000;

/** Old enough that its creation would have a record by now. `--min-age 0s` disables the wait. */
export function isSettled(since: Date, { snapshot, policy }: NodeView): boolean {
  return snapshot.observedAt.getTime() - since.getTime() >= Math.min(SETTLE_MS, policy.minAgeMs);
}
