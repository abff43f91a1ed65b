import { isStatic } from "../classes/pod-truth.ts";
import type { AboutId } from "../classes/view.ts";
import type { Sandbox } from "../snapshot/types.ts";

/** Static pods and host-network pods of the system: what the cluster itself stands on. */
export function isControlPlane(sandbox: Sandbox, { metadata }: AboutId): boolean {
  if (isStatic(sandbox)) return true;
  return metadata?.hostNetwork === true && sandbox.pod.namespace === "kube-system";
}
