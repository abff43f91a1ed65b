import type { PodRef } from "../../src/node/types/ids.ts";
import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

/** A volume below kubelet's directory of a pod that is still mounted. Without `isMounted`: only its empty directory. */
export async function leftoverVolume(
  node: LabNode,
  pod: Pick<PodRef, "uid">,
  { isMounted }: { readonly isMounted: boolean },
): Promise<Injected & { readonly path: string; readonly mount: string }> {
  const path = `/var/lib/kubelet/pods/${pod.uid}`;
  const mount = `${path}/volumes/kubernetes.io~csi/pvc-lab/mount`;
  await node.check(["mkdir", "-p", mount]);
  if (isMounted) await node.check(["mount", "-t", "tmpfs", "lab-volume", mount]);
  return { fault: "leftover-volumes", did: `left ${mount}${isMounted ? " mounted" : ""}`, path, mount };
}
