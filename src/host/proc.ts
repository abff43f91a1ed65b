import { constants } from "node:fs";
import { lstatSync, type OpenFile, opendirSync, openFile, readlinkSync } from "./guarded-fs.ts";
import { errorLabel } from "./source.ts";

/** Parsers for /proc. Every function accepts any text and never throws. */

/** Linux counts start times of processes in hundredths of a second for user space, whatever the kernel's own tick. */
const TICKS_PER_SECOND = 100;

const KERNEL_THREAD = 0x00200000;

export interface ProcessStat {
  readonly pid: number;
  readonly comm: string;
  /** R, S, D (uninterruptible), Z (zombie) … */
  readonly state: string;
  readonly parentPid: number;
  /** The session in which it was forked, or that it created; a process cannot join another. */
  readonly session: number;
  readonly kernelThread: boolean;
  readonly startedSecondsAfterBoot: number;
}

/** By a signal or a debugger. */
export function isStopped({ state }: Pick<ProcessStat, "state">): boolean {
  return state === "T" || state === "t";
}

/** /proc/<pid>/stat. The name is in parentheses and may contain parentheses and spaces: the last parenthesis counts. */
export function parseStat(text: string): ProcessStat | undefined {
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  if (open < 1 || close < open) return undefined;
  const pid = Number(text.slice(0, open));
  const fields = text.slice(close + 2).split(" ", 20);
  const [state, parentPid, session] = [fields[0], Number(fields[1]), Number(fields[3])];
  const [flags, start] = [Number(fields[6]), Number(fields[19])];
  if (!Number.isSafeInteger(pid) || pid < 1 || !state || fields.length < 20) return undefined;
  if (![parentPid, session, flags, start].every(Number.isSafeInteger)) return undefined;
  return {
    pid,
    comm: text.slice(open + 1, close),
    state,
    parentPid,
    session,
    kernelThread: (flags & KERNEL_THREAD) !== 0,
    startedSecondsAfterBoot: start / TICKS_PER_SECOND,
  };
}

/** Arguments or environment: strings that end with NUL. */
export function splitNul(text: string): readonly string[] {
  const parts = text.split("\0");
  if (parts.at(-1) === "") parts.pop();
  return parts;
}

export interface CniEnviron {
  readonly command: string;
  readonly containerId: string;
  readonly netns: string;
  readonly args: string;
}

/** Commands for one container. */
const CNI_COMMANDS: ReadonlySet<string> = new Set(["ADD", "DEL", "CHECK"]);

/** The CNI call of a plugin, or of its child process. */
export function parseCniEnviron(environ: string): CniEnviron | undefined {
  if (!environ.includes("CNI_COMMAND=")) return undefined;
  const values = new Map<string, string>();
  for (const entry of splitNul(environ)) {
    const equals = entry.indexOf("=");
    if (equals > 0 && entry.startsWith("CNI_")) values.set(entry.slice(0, equals), entry.slice(equals + 1));
  }
  const command = values.get("CNI_COMMAND") ?? "";
  const containerId = values.get("CNI_CONTAINERID") ?? "";
  if (!CNI_COMMANDS.has(command) || containerId === "") return undefined;
  return { command, containerId, netns: values.get("CNI_NETNS") ?? "", args: values.get("CNI_ARGS") ?? "" };
}

/** `K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;…` */
export function parseCniArgs(args: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const pair of args.split(";")) {
    const equals = pair.indexOf("=");
    if (equals > 0) values.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
  return values;
}

/** `net:[4026531840]` */
export function parseNamespaceLink(link: string): bigint | undefined {
  const [, inode] = /^net:\[(\d{1,20})\]$/.exec(link) ?? [];
  return inode === undefined ? undefined : BigInt(inode);
}

/** `__SO_ACCEPTCON`: a process listens. */
const LISTENING = 0x10000;

/** /proc/net/unix: `Num: RefCount Protocol Flags Type St Inode Path`; only bound sockets have a path. */
export function parseListeningSockets(text: string): readonly { readonly inode: string; readonly path: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, flags, inode, path] = /^\S+: \S+ \S+ ([0-9A-Fa-f]{8}) \S+ \S+ +(\d+) (.+)$/.exec(line) ?? [];
    if (flags === undefined || inode === undefined || path === undefined) return [];
    return (Number.parseInt(flags, 16) & LISTENING) === 0 ? [] : [{ inode, path }];
  });
}

const TCP_LISTEN = "0A";
/** 127.0.0.1, any address, and the same for IPv6, in the kernel's byte order. */
const ON_LOOPBACK: ReadonlySet<string> = new Set(["0100007F", "00000000", "0".repeat(32)]);

/** The sockets of /proc/net/tcp and tcp6 that are reachable on 127.0.0.1: `sl local_address rem_address st … inode` */
export function parseListeningPorts(text: string): readonly { readonly port: number; readonly inode: string }[] {
  return text.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    if (state !== TCP_LISTEN || inode === undefined || !ON_LOOPBACK.has(address)) return [];
    return [{ port: Number.parseInt(port, 16), inode }];
  });
}

/** Reads below /proc, where sizes are unknown beforehand and processes end while they are read. */

export type ProcRead =
  | { readonly kind: "content"; readonly text: string }
  | { readonly kind: "gone" }
  | { readonly kind: "denied" }
  | { readonly kind: "unreadable"; readonly code: string };

const shared = Buffer.allocUnsafe(128 * 1024);

/** Returns up to maxBytes of the file; the rest is dropped. */
export function readProcFile(path: string, maxBytes: number = shared.length): ProcRead {
  let file: OpenFile;
  try {
    file = openFile(path, constants.O_RDONLY);
  } catch (error) {
    return procError(error);
  }
  try {
    let buffer: Buffer = shared;
    let length = 0;
    while (length < maxBytes) {
      if (length === buffer.length) buffer = grown(buffer, maxBytes);
      const count = file.read(buffer, length, Math.min(buffer.length, maxBytes) - length, null);
      if (count === 0) break;
      length += count;
    }
    return { kind: "content", text: buffer.toString("utf8", 0, length) };
  } catch (error) {
    return procError(error);
  } finally {
    file.close();
  }
}

/** Only for the few files that need it: a buffer of the maximum size would cause a garbage collection in every scan. */
function grown(full: Buffer, most: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(2 * full.length, most));
  full.copy(larger);
  return larger;
}

/** `readLink` is for tests. */
export function readProcLink(path: string, readLink: (path: string) => string = readlinkSync): ProcRead {
  try {
    return { kind: "content", text: readLink(path) };
  } catch (error) {
    const failed = procError(error);
    // The kernel also answers EACCES if the process ends while its link is being read.
    return failed.kind === "denied" && isGone(path) ? { kind: "gone" } : failed;
  }
}

function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch (error) {
    return procError(error).kind === "gone";
  }
}

/** The link's target; undefined if it cannot be read for any reason. */
export function procLink(path: string): string | undefined {
  const read = readProcLink(path);
  return read.kind === "content" ? read.text : undefined;
}

/** A service holds some thousands of files. A process with millions is a flood, and is not read to its end. */
const MAX_OPEN_FILES = 200_000;
const OPEN_FILES_MS = 500;

/** The targets of a process's open files, such as `socket:[1234]`; none if they cannot be read. */
export function openFilesOf(processDir: string, timeoutMs?: number): ReadonlySet<string> {
  const targets = new Set<string>();
  const keep = (target: string): boolean => {
    targets.add(target);
    return false;
  };
  visitOpenFiles(processDir, keep, timeoutMs);
  return targets;
}

/** How many of a process's file descriptors have this target. */
export function countOpenFiles(processDir: string, target: string): number {
  let count = 0;
  visitOpenFiles(processDir, (one) => {
    if (one === target) count += 1;
    return false;
  });
  return count;
}

/** Whether a process has one of these open. */
export function holdsOpen(processDir: string, targets: ReadonlySet<string>): boolean | "denied" {
  let isFound = false;
  const code = visitOpenFiles(processDir, (target) => (isFound = targets.has(target)));
  return code === "EACCES" || code === "EPERM" ? "denied" : isFound;
}

/** Until `visit` returns true. Returns the code of an error: ended, or permission denied. */
function visitOpenFiles(
  processDir: string,
  visit: (target: string) => boolean,
  timeoutMs = OPEN_FILES_MS,
): string | undefined {
  const deadline = performance.now() + timeoutMs;
  try {
    const dir = opendirSync(`${processDir}/fd`, { bufferSize: 1024 });
    try {
      for (let count = 0; count < MAX_OPEN_FILES && performance.now() < deadline; count += 1) {
        const entry = dir.readSync();
        if (entry === null) return undefined;
        const target = procLink(`${processDir}/fd/${entry.name}`);
        if (target !== undefined && visit(target)) return undefined;
      }
    } finally {
      dir.closeSync();
    }
  } catch (error) {
    return errorLabel(error);
  }
  return undefined;
}

/** The file's text; empty if it cannot be read for any reason. */
export function procText(path: string, maxBytes?: number): string {
  const read = readProcFile(path, maxBytes);
  return read.kind === "content" ? read.text : "";
}

function procError(error: unknown): ProcRead {
  const code = errorLabel(error);
  if (code === "ENOENT" || code === "ESRCH") return { kind: "gone" };
  return code === "EACCES" || code === "EPERM" ? { kind: "denied" } : { kind: "unreadable", code };
}
