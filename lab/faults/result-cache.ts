import { readFile, truncate } from "node:fs/promises";
import { bridgeNetwork } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

/** libcni writes its result file in place and never syncs it: after a power cut the file may be empty. */
export async function emptyResultCache(node: LabNode, pod: LabPod, network = bridgeNetwork().name): Promise<Injected> {
  const path = resultPath(pod, network);
  await truncate(node.path(path), 0);
  return { fault: "empty-result-cache", did: `emptied ${path}`, sandboxId: pod.sandboxId, path };
}

/** The same with only the first block on disk. */
export async function halfWrittenResultCache(
  node: LabNode,
  pod: LabPod,
  network = bridgeNetwork().name,
): Promise<Injected> {
  const path = resultPath(pod, network);
  const { length } = await readFile(node.path(path));
  await truncate(node.path(path), Math.floor(length / 2));
  return { fault: "half-written-result-cache", did: `cut ${path} in half`, sandboxId: pod.sandboxId, path };
}

function resultPath(pod: LabPod, network: string): string {
  return `/var/lib/cni/results/${network}-${pod.sandboxId}-eth0`;
}
