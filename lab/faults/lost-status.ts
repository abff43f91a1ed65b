import { truncateSync } from "node:fs";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

/** A power cut right after the file with a container's state was written: the file is there, and empty. */
export async function lostStatus(node: LabNode, pod: LabPod): Promise<Injected & { readonly path: string }> {
  const [containerId = "none"] = pod.containerIds;
  await node.powerCut();
  const path = `/var/lib/containerd/io.containerd.grpc.v1.cri/containers/${containerId}/status`;
  truncateSync(node.path(path));
  return { fault: "lost-status", did: `cut the power and emptied ${path}`, sandboxId: pod.sandboxId, path };
}
