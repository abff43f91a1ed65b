import { sandboxId } from "../../src/node/types/ids.ts";
import { containerdCall, idMessage } from "../containerd-raw.ts";
import type { LabNode } from "../node.ts";
import type { LabPod } from "../pods.ts";
import { unknownId } from "./host-local.ts";
import type { Injected } from "./injected.ts";

/**
 * A second record with the pod's reserved name and another id. The running containerd ignores it; its next start fails.
 */
export async function duplicateRecord(node: LabNode, pod: LabPod): Promise<Injected> {
  const id = unknownId();
  const answer = await containerdCall(node, "containers.v1.Containers/Get", idMessage(pod.sandboxId));
  // The answer of Get has the format of a Create request, and both ids have the same length.
  const copy = replaceAll(answer, Buffer.from(pod.sandboxId), Buffer.from(id));
  await containerdCall(node, "containers.v1.Containers/Create", copy);
  const did = `added the record ${id} under the name ${pod.reservedName}`;
  return { fault: "duplicate-record", did, sandboxId: sandboxId(id) };
}

function replaceAll(bytes: Buffer, from: Buffer, to: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  for (let at = copy.indexOf(from); at >= 0; at = copy.indexOf(from, at + to.length)) to.copy(copy, at);
  return copy;
}
