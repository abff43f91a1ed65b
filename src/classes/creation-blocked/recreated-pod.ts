import { isHeldInCluster } from "../../evidence/pod-presence.ts";
import type { Step } from "../../evidence/step.ts";
import type { NodeView } from "../../evidence/view.ts";
import type { PodRef, SandboxId } from "../../snapshot/ids.ts";
import type { KnownPod } from "../../snapshot/types/kubernetes.ts";

/** A recreated pod has another uid, and with it another, free name. */
export const RECREATE_BY_CONSENT: readonly string[] = [
  "Delete the pod: its controller creates a new one, whose sandbox name is free.",
  "Consent by naming this class alone: unghost heal --only sandbox-name-held-by-inflight-run --yes.",
];

/** Only for a pod with a controller that re-creates it: never a bare pod, a static one, or one that is opted out. */
export function recreation(pod: PodRef | undefined, holder: SandboxId, view: NodeView): readonly Step[] {
  const { kubernetes, node } = view.snapshot;
  if (pod === undefined || kubernetes.source !== "api" || isHeldInCluster(pod, view)) return [];
  const { controller, objectUid } = knownPod(pod, view) ?? {};
  if (controller === undefined || objectUid !== undefined) return [];
  const { namespace, name, uid } = pod;
  return [{ kind: "kick-pod", namespace, name, uid, node: kubernetes.nodeName ?? node, holder }];
}

/** Whether the pod is finished or gone in the cluster: then its name blocks nothing. */
export function isNameUnused(pod: PodRef | undefined, view: NodeView): boolean {
  if (pod === undefined || view.snapshot.kubernetes.source !== "api") return false;
  const known = knownPod(pod, view);
  return known === undefined || known.terminating === true;
}

function knownPod({ uid }: PodRef, { snapshot }: NodeView): KnownPod | undefined {
  return snapshot.kubernetes.source === "none" ? undefined : snapshot.kubernetes.pods.find((pod) => pod.uid === uid);
}
