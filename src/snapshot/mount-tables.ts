import { posix } from "node:path";
import { hostPath } from "../host/host-paths.ts";
import { readProcFile, readProcLink } from "../host/proc-fs.ts";
import { listDirectory } from "../host/safe-fs.ts";
import { failed, read, type Source } from "../host/source.ts";
import { eachPaced } from "./pace.ts";
import type { ProcessStat } from "./proc-parse.ts";
import type { ProcessTable } from "./process-table.ts";

/** One line of a process' mount table. */
export interface MountEntry {
  /** Of a process in the mount namespace. */
  readonly pid: number;
  /** `major:minor` of the file system's device. */
  readonly device: string;
  /** The mounted directory within the file system. */
  readonly root: string;
  readonly point: string;
  readonly source: string;
}

/** Enough for a node with thousands of pods. */
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The mount tables of all processes and threads, each mount namespace once: a container keeps its mounts after they
 * were detached from the node's own tree. Fails as a whole if one table is unreadable.
 */
export async function readMountTables(where: {
  readonly root: string;
  readonly table: Source<ProcessTable>;
  readonly signal: AbortSignal;
}): Promise<Source<readonly MountEntry[]>> {
  const { root, table, signal } = where;
  if (table.status !== "read") return table;
  const proc = hostPath(root, "/proc");
  const seen = new Set<string>();
  const entries: MountEntry[] = [];
  let unread: string | undefined;
  const finished = await eachPaced(table.value.processes, signal, (stat) => {
    if (unread !== undefined || hasEnded(stat)) return;
    for (const task of tasksOf(proc, stat.pid)) {
      unread ??= addNamespace(task, stat.pid, seen, entries);
    }
  });
  if (unread !== undefined) return failed(unread, "run unghost as root on the node, with CAP_SYS_PTRACE");
  return finished ? read(entries) : failed("the mount tables of all processes were not read in time");
}

function hasEnded({ state }: ProcessStat): boolean {
  return state === "Z" || state === "X";
}

function tasksOf(proc: string, pid: number): readonly string[] {
  const listing = listDirectory(`${proc}/${pid}/task`);
  return listing.kind === "listed"
    ? listing.entries.map(({ name }) => `${proc}/${pid}/task/${name}`)
    : [`${proc}/${pid}`];
}

/** Returns the error; undefined if it was read now or before, or if the task has ended meanwhile. */
function addNamespace(dir: string, pid: number, seen: Set<string>, entries: MountEntry[]): string | undefined {
  const link = readProcLink(`${dir}/ns/mnt`);
  if (link.kind === "gone") return undefined;
  if (link.kind === "content" && seen.has(link.text)) return undefined;
  const text = readProcFile(`${dir}/mountinfo`, MAX_BYTES);
  // A task that ends while it is read has no mount namespace any more, and the kernel returns EINVAL.
  if (text.kind === "gone" || (text.kind === "unreadable" && isEnding(dir))) return undefined;
  if (link.kind !== "content" || text.kind !== "content") return `the mount table of process ${pid} cannot be read`;
  if (text.text.length >= MAX_BYTES) return `the mount table of process ${pid} is larger than ${MAX_BYTES} bytes`;
  seen.add(link.text);
  for (const entry of mountsIn(text.text)) entries.push({ pid, ...entry });
  return undefined;
}

function isEnding(dir: string): boolean {
  const stat = readProcFile(`${dir}/stat`);
  return stat.kind !== "content" || /\) [ZX] /.test(stat.text);
}

/** Whether a process has a directory of the node among its mounts, at any path. False if that cannot be read. */
export function hasMountOf(root: string, pid: number, dir: string): boolean {
  const onNode = mountsOf(root, 1)
    .filter(({ point }) => contains(point, dir))
    .reduce<Mount | undefined>((best, one) => (best && best.point.length > one.point.length ? best : one), undefined);
  if (onNode === undefined) return false;
  const inFileSystem = posix.join(onNode.root, posix.relative(onNode.point, dir));
  return mountsOf(root, pid).some((one) => one.device === onNode.device && contains(one.root, inFileSystem));
}

function mountsOf(root: string, pid: number): readonly Mount[] {
  const text = readProcFile(hostPath(root, `/proc/${pid}/mountinfo`), MAX_BYTES);
  return text.kind === "content" ? mountsIn(text.text) : [];
}

function contains(dir: string, path: string): boolean {
  return dir === "/" || path === dir || path.startsWith(`${dir}/`);
}

type Mount = Omit<MountEntry, "pid">;

/** Lines of `/proc/<pid>/mountinfo`: `36 35 98:0 /root /point rw shared:1 - ext4 /dev/root rw`. */
export function mountsIn(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const [before = "", after = ""] = line.split(" - ", 2);
    const [, , device, root, point] = before.split(" ");
    const [, source = ""] = after.split(" ");
    if (device === undefined || root === undefined || point === undefined) return [];
    return [{ device, root: unescaped(root), point: unescaped(point), source: unescaped(source) }];
  });
}

/** Spaces, tabs, newlines and backslashes are octal. */
function unescaped(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
