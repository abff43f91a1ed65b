import type { LabNode } from "./node.ts";
import { rawUnary } from "./raw-grpc.ts";

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
