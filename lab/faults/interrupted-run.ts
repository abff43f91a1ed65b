import type { LabNode } from "../node.ts";
import type { PodSpec } from "../pods.ts";
import { hungAdd } from "./hung-plugin.ts";
import type { Injected } from "./injected.ts";

/**
 * containerd is killed during RunPodSandbox, before the pause process was started. A 2.x comes back with a NotReady
 * sandbox that has Go's zero time, a 1.6 with an ordinary dead one.
 */
export async function interruptedRun(node: LabNode, spec: PodSpec): Promise<Injected> {
  const hung = await hungAdd(node, spec);
  await node.killRuntime();
  await node.kill(hung.pid);
  await node.startRuntime();
  const did = `killed containerd while it was making ${hung.reservedName}`;
  return { fault: "interrupted-run", did, sandboxId: hung.sandboxId };
}
