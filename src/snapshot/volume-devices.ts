import { readdirSync, type Stats, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { hostPath, resolveOnHost } from "../host/host-paths.ts";
import { readProcLink } from "../host/proc-fs.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { failed, read, type Source } from "../host/source.ts";
import { errorLabel } from "../host/system-error.ts";
import { eachPaced } from "./pace.ts";
import type { ProcessTable } from "./process-table.ts";

/** A block device that is named after a volume, and a process that has it open. */
export interface VolumeDevices {
  /** `major:minor`, as mount tables write them. */
  readonly numbers: readonly string[];
  readonly openers: readonly { readonly pid: number; readonly path: string }[];
}

/**
 * Directories where drivers and udev name devices after volumes, such as /dev/longhorn/<volume> and
 * /dev/disk/by-id/…<volume>.
 */
const DEVICE_DIRS = ["/dev", "/dev/disk/by-id", "/dev/disk/by-label", "/dev/longhorn", "/dev/mapper"] as const;
/** One level deeper: /dev/rbd/<pool>/<image>, /dev/drbd/by-res/<resource>/0, /dev/<volume group>/<volume>. */
const NESTED_DIRS = ["/dev", "/dev/rbd", "/dev/drbd/by-res"] as const;

/** A shorter name is part of too many others. */
const SHORTEST_NAME = 6;

const STAT_MS = 1000;

export async function readVolumeDevices(where: {
  readonly root: string;
  readonly table: Source<ProcessTable>;
  /** Handles and PersistentVolumes. */
  readonly names: readonly string[];
  readonly signal: AbortSignal;
}): Promise<Source<VolumeDevices>> {
  const { root, table, names, signal } = where;
  if (table.status !== "read") return table;
  const numbers = new Map<number, string>();
  for (const path of devicePaths(root)) {
    if (!names.some((name) => isNamedAfter(path, name))) continue;
    const stats = statOf(resolveOnHost(root, path, "follow"));
    if (stats?.isBlockDevice()) numbers.set(stats.rdev, path);
  }
  const openers: { pid: number; path: string }[] = [];
  if (numbers.size === 0) return read({ numbers: [], openers });
  const proc = hostPath(root, "/proc");
  let unread: string | undefined;
  const finished = await eachPaced(table.value.processes, signal, async ({ pid }) => {
    try {
      for (const fd of readdirSync(`${proc}/${pid}/fd`)) {
        const file = `${proc}/${pid}/fd/${fd}`;
        const link = readProcLink(file);
        // Sockets, pipes and the like have no path.
        if (link.kind !== "content" || !link.text.startsWith("/")) continue;
        const stats = await statWithin(STAT_MS, file);
        if (stats === "late") unread ??= `what process ${pid} has open at ${link.text} is unknown`;
        else if (stats?.isBlockDevice()) {
          const path = numbers.get(stats.rdev);
          if (path !== undefined) openers.push({ pid, path });
        }
      }
    } catch (error) {
      const code = errorLabel(error);
      if (code !== "ENOENT" && code !== "ESRCH") unread ??= `the open files of process ${pid} cannot be read (${code})`;
    }
  });
  if (unread !== undefined) return failed(unread, "run unghost as root on the node, with CAP_SYS_PTRACE");
  if (!finished) return failed("the open files of all processes were not read in time");
  return read({ numbers: [...numbers.keys()].map(deviceNumber), openers });
}

function devicePaths(root: string): readonly string[] {
  const list = (dir: string): readonly string[] => {
    const listing = listDirectory(resolveOnHost(root, dir, "keep"));
    return listing.kind === "listed" ? listing.entries.map(({ name }) => `${dir}/${name}`) : [];
  };
  return [...DEVICE_DIRS.flatMap(list), ...NESTED_DIRS.flatMap(list).flatMap(list)];
}

/** Without punctuation: the device of `vol-0abc` is `nvme-Amazon_Elastic_Block_Store_vol0abc`. */
function isNamedAfter(path: string, name: string): boolean {
  const plain = plainOf(name);
  return plain.length >= SHORTEST_NAME && plainOf(path).includes(plain);
}

function plainOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "");
}

/** Returns undefined for a missing path, or one that cannot be an open device. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A dangling link, or a file of a namespace that is gone.
    return undefined;
  }
}

/** Off the main thread: a file on an unreachable server blocks the reader. */
async function statWithin(milliseconds: number, path: string): Promise<Stats | undefined | "late"> {
  const { stat } = await import("node:fs/promises");
  const asked = stat(path).catch(() => undefined);
  return await Promise.race([asked, sleep(milliseconds, "late" as const, { ref: false })]);
}

/** Like glibc's major() and minor(). */
function deviceNumber(rdev: number): string {
  const device = BigInt(rdev);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return `${major}:${minor}`;
}
