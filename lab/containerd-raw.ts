import type { LabNode } from "./node.ts";
import type { LabPod } from "./pods.ts";
import { rawUnary } from "./raw-grpc.ts";
import { containerdRelease } from "./runtimes.ts";

/** A call to containerd's own API in the Kubernetes namespace that unghost itself does not need. */
export function containerdCall(node: LabNode, method: string, message: Uint8Array): Promise<Buffer> {
  return rawUnary(node.socket, `/containerd.services.${method}`, message, { "containerd-namespace": "k8s.io" });
}

/** A protobuf message with a string as its only field: the format of most requests about one id. */
export function idMessage(id: string): Buffer {
  const text = Buffer.from(id);
  if (text.length > 127) throw new Error(`an id of ${text.length} bytes does not fit a one-byte length`);
  return Buffer.concat([Buffer.from([0x0a, text.length]), text]);
}

/** Behind the back of the CRI plugin: what belongs to the sandbox stays. */
export async function deleteRecord(node: LabNode, { sandboxId }: LabPod): Promise<void> {
  const { sandboxStore, leases } = containerdRelease(node.runtime);
  const request = idMessage(sandboxId);
  await containerdCall(node, "containers.v1.Containers/Delete", request);
  if (sandboxStore) await containerdCall(node, "sandbox.v1.Store/Delete", request);
  if (leases) await containerdCall(node, "leases.v1.Leases/Delete", request);
}
