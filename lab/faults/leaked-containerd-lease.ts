import { sandboxId } from "../../src/node/types/ids.ts";
import type { LabNode } from "../node.ts";
import { unknownId } from "./host-local.ts";
import type { Injected } from "./injected.ts";

/**
 * Since 2.1 containerd holds a lease with the sandbox's id; nothing removes it if the record is deleted in another way.
 */
export async function leakedContainerdLease(node: LabNode): Promise<Injected> {
  const id = unknownId();
  await node.check(["ctr", "-n", "k8s.io", "leases", "create", "--id", id, "--expires", "0"]);
  return { fault: "leaked-containerd-lease", did: `left the lease ${id} of no sandbox`, sandboxId: sandboxId(id) };
}
