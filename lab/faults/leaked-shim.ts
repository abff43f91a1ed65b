import { deleteRecord } from "../containerd-raw.ts";
import type { LabNode } from "../node.ts";
import { processesOf } from "../node-processes.ts";
import { type PodSpec, runPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

/**
 * A shim and its pause process without a record. The pod uses the host network, so that no address or cache file leaks.
 * Restarts the runtime, which otherwise still has the sandbox in memory.
 */
export async function leakedShim(node: LabNode, spec: PodSpec = { name: "leaked-shim" }): Promise<Injected> {
  const pod = await runPod(node, { ...spec, hostNetwork: true });
  await deleteRecord(node, pod);
  await node.killRuntime();
  await node.startRuntime();
  const shim = processesOf(node).find(({ command }) => command.includes("-id") && command.includes(pod.sandboxId));
  if (shim === undefined) throw new Error(`the shim of ${pod.sandboxId} did not outlive its record`);
  const { pid } = shim;
  return {
    fault: "leaked-shim",
    did: `took away the record of the running shim ${pid}`,
    sandboxId: pod.sandboxId,
    pid,
  };
}
