import { deleteRecord } from "../containerd-raw.ts";
import type { LabNode } from "../node.ts";
import { type PodSpec, runPod } from "../pods.ts";
import type { Injected } from "./injected.ts";

/**
 * A container that the runtime lists without its sandbox: the power was cut, and of its pod only the sandbox's record
 * was lost. The pod uses the host network, so that no address or cache file leaks.
 */
export async function strayContainer(
  node: LabNode,
  spec: PodSpec = { name: "stray", containers: [{ name: "main" }] },
): Promise<Injected & { readonly containerId: string }> {
  const pod = await runPod(node, { ...spec, hostNetwork: true });
  const [containerId] = pod.containerIds;
  if (containerId === undefined) throw new Error("the pod needs a container");
  await node.powerCut();
  await node.powerOn();
  await deleteRecord(node, pod);
  await node.killRuntime();
  await node.startRuntime();
  const did = `took away the record of the sandbox ${pod.sandboxId} of container ${containerId}`;
  return { fault: "stray-container", did, sandboxId: pod.sandboxId, containerId };
}
