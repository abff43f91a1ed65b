import { randomBytes } from "node:crypto";
import { cpSync, existsSync, lstatSync, readdirSync, statfsSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Tools } from "./tools.ts";

/** What programs expect in /etc. Nothing else of the machine's configuration may be in a node. */
const ETC_FROM_MACHINE = ["passwd", "group", "nsswitch.conf", "ld.so.cache", "alternatives", "protocols", "services"];

const DIRS = [
  "etc/cni/net.d",
  "etc/containerd",
  "opt/cni/bin",
  "root",
  "var/lib/containerd",
  "var/lib/cni",
  "var/lib/kubelet",
  "var/lib/unghost",
  "var/log/pods",
  "var/tmp",
];

const OVERLAYFS_MAGIC = 0x794c7630;

/** Parts of a node's tree that are disks; the rest is tmpfs or the machine's. /var/run leads to /run. */
const ON_DISK = /^\/(etc|opt|root|var)(\/|$)(?!run(\/|$))/;

/** The machine's path of a path on the node's disks. */
export function diskPath(nodeDir: string, path: string): string {
  const plain = resolve("/", path);
  if (!ON_DISK.test(plain))
    throw new Error(`${path} is not on a disk of the lab node: reach it by livePath() or exec()`);
  return join(nodeDir, "disk", plain);
}

/** Creates the disks of a new node: what survives a power cut. */
export async function createDisk(nodeDir: string, hostname: string, tools: Tools): Promise<void> {
  for (const dir of DIRS) await mkdir(diskPath(nodeDir, dir), { recursive: true });
  symlinkSync("/run", join(diskPath(nodeDir, "var"), "run"));
  for (const name of ETC_FROM_MACHINE) {
    const source = join("/etc", name);
    if (existsSync(source))
      cpSync(source, diskPath(nodeDir, `etc/${name}`), { recursive: true, verbatimSymlinks: true });
  }
  await writeFile(diskPath(nodeDir, "etc/hostname"), `${hostname}\n`);
  await writeFile(diskPath(nodeDir, "etc/hosts"), `127.0.0.1 localhost ${hostname}\n::1 localhost\n`);
  // Empty on purpose: containerd copies it into every sandbox, and the lab must not query a name server.
  await writeFile(diskPath(nodeDir, "etc/resolv.conf"), "");
  await writeFile(diskPath(nodeDir, "etc/machine-id"), `${randomBytes(16).toString("hex")}\n`);
  for (const plugin of readdirSync(tools.cniBinDir)) {
    symlinkSync(join(tools.cniBinDir, plugin), diskPath(nodeDir, `opt/cni/bin/${plugin}`));
  }
}

/**
 * Writes a file on a node's disk, powered or not. In place, like most programs; only a link is replaced, not followed.
 */
export async function writeDiskFile(
  nodeDir: string,
  path: string,
  content: string | Uint8Array,
  mode = 0o644,
): Promise<void> {
  const target = diskPath(nodeDir, path);
  await mkdir(dirname(target), { recursive: true });
  if (lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink()) await rm(target);
  await writeFile(target, content, { mode });
}

export function newBootId(nodeDir: string): void {
  writeFileSync(join(nodeDir, "boot-id"), `${crypto.randomUUID()}\n`);
}

/** overlayfs cannot have its upper layer on another overlay, and a container's root file system is one. */
export function snapshotterFor(nodeDir: string): "overlayfs" | "native" {
  return statfsSync(nodeDir).type === OVERLAYFS_MAGIC ? "native" : "overlayfs";
}
