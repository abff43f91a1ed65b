import { randomBytes } from "node:crypto";
import { utimes } from "node:fs/promises";
import { uptime } from "node:os";
import { sandboxId } from "../../src/node/types/ids.ts";
import { bridgeNetwork } from "../cni-config.ts";
import type { LabNode } from "../node.ts";
import type { Injected } from "./injected.ts";

const AN_HOUR_MS = 3_600_000;

/** An address of a sandbox that no longer exists: its DEL was lost. */
export async function leakedLease(
  node: LabNode,
  address = "10.88.200.1",
  network = bridgeNetwork().name,
): Promise<Injected> {
  const id = unknownId();
  const path = leasePath(network, address);
  // host-local separates the two lines by CR LF and accepts nothing else.
  await writeOld(node, path, `${id}\r\neth0`);
  return {
    fault: "leaked-lease",
    did: `leased ${address} to ${id}, which does not exist`,
    sandboxId: sandboxId(id),
    path,
  };
}

/** host-local creates the file and writes the owner into it without a sync: a power cut leaves only the name. */
export async function emptyLease(
  node: LabNode,
  address = "10.88.200.2",
  network = bridgeNetwork().name,
): Promise<Injected> {
  const path = leasePath(network, address);
  await writeOld(node, path, "");
  return { fault: "empty-lease", did: `left ${path} without an owner`, path };
}

export function unknownId(): string {
  return randomBytes(32).toString("hex");
}

/**
 * Writes a file with a time before the node's current boot. Without time namespaces that is the machine's boot, which
 * may be months ago.
 */
export async function writeOld(node: LabNode, path: string, content: string): Promise<void> {
  await node.writeFile(path, content);
  const then = new Date(Date.now() - uptime() * 1000 - AN_HOUR_MS);
  await utimes(node.path(path), then, then);
}

function leasePath(network: string, address: string): string {
  return `/var/lib/cni/networks/${network}/${address}`;
}
