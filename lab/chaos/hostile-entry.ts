import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { bridgeNetwork } from "../cni-config.ts";
import { unknownId } from "../faults/host-local.ts";
import type { Injected } from "../faults/injected.ts";
import type { LabNode } from "../node.ts";

export type HostileKind = "symlink" | "fifo" | "directory" | "sparse";

/** The target of a symlink among the caches. */
export const PRECIOUS_FILE = "/etc/precious";
export const PRECIOUS = "not to be lost\n";
const SPARSE_BYTES = 2 * 1024 ** 3;

/** An entry with the name of a result file that is not one. */
export async function hostileEntry(node: LabNode, kind: HostileKind, id = unknownId()): Promise<Injected> {
  const path = `/var/lib/cni/results/${bridgeNetwork().name}-${id}-eth0`;
  const onDisk = node.path(path);
  mkdirSync(node.path("/var/lib/cni/results"), { recursive: true });
  if (kind === "symlink") {
    await node.writeFile(PRECIOUS_FILE, PRECIOUS);
    symlinkSync(PRECIOUS_FILE, onDisk);
  }
  if (kind === "fifo") execFileSync("mkfifo", [onDisk]);
  if (kind === "directory") {
    mkdirSync(onDisk);
    writeFileSync(`${onDisk}/precious`, PRECIOUS);
  }
  if (kind === "sparse") {
    writeFileSync(onDisk, "");
    truncateSync(onDisk, SPARSE_BYTES);
  }
  return { fault: `hostile-${kind}`, did: `put a ${kind} at ${path}`, path };
}
