import { mkdir } from "node:fs/promises";
import type { PodRef } from "../src/snapshot/ids.ts";
import type { LabNode } from "./node.ts";

/** What kubelet leaves on disk for a pod it knows: all that is left to ask when neither it nor the API answers. */
export async function kubeletKnows(node: LabNode, pod: PodRef): Promise<void> {
  const dir = node.path(`/var/lib/kubelet/pods/${pod.uid}`);
  for (const name of ["containers", "plugins", "volumes"]) await mkdir(`${dir}/${name}`, { recursive: true });
  await node.writeFile(`/var/lib/kubelet/pods/${pod.uid}/etc-hosts`, `127.0.0.1 localhost ${pod.name}\n`);
}
