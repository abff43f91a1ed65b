import { containerdCall, idMessage } from "../containerd-raw.ts";
import type { LabNode } from "../node.ts";
import { unknownId } from "./host-local.ts";

/** What a containerd 2.0 leaves that is killed between its two writes: a record in its sandbox store without metadata. */
export async function recordWithoutMetadata(node: LabNode, id: string = unknownId()): Promise<string> {
  const runtimeName = idMessage("io.containerd.runc.v2");
  const sandbox = Buffer.concat([idMessage(id), Buffer.from([0x12, runtimeName.length]), runtimeName]);
  await containerdCall(node, "sandbox.v1.Store/Create", Buffer.concat([Buffer.from([0x0a, sandbox.length]), sandbox]));
  return id;
}
