import {
  closeSync,
  type Dir,
  existsSync as exists,
  fstatSync,
  lstatSync as lstat,
  openSync as open,
  opendirSync as opendir,
  readlinkSync as readlink,
  readSync,
  type Stats,
  statSync as stat,
  statfsSync as statfs,
} from "node:fs";
import { posix as path } from "node:path";
import type { EntryType, MountAnswer, MountRequest, MountStats } from "./mount-child.ts";

/**
 * The functions of node:fs for paths of the node. A call on a mount that does not answer would wait in the kernel, where
 * neither a timer nor a signal reaches this process. So calls below mounts that may stop answering are made by a child,
 * and they fail below a mount that was late.
 */

type Ask = (request: MountRequest) => MountAnswer | undefined;

let hung: ReadonlySet<string> = new Set();
let mayHang: ReadonlySet<string> = new Set();
/** Both. */
let unreliable: ReadonlySet<string> = new Set();
let ask: Ask | undefined;
let late: string | undefined;

/** From now on everything below these mount points fails. */
export function refuseBelow(points: readonly string[]): void {
  hung = new Set(points);
  mayHang = new Set();
  unreliable = hung;
  late = undefined;
}

/** From now on calls below these mount points are made by `by`, until one of them is late: then all of these fail. */
export function readThroughChild(points: readonly string[], by: Ask): void {
  mayHang = new Set(points);
  unreliable = new Set([...hung, ...mayHang]);
  ask = by;
}

/** The mount point at which a call was late since refuseBelow. */
export function lateMount(): string | undefined {
  return late;
}

/** The mount point on the way to a path that has stopped answering, or may do so. */
export function unreliableMountOn(file: string): string | undefined {
  return unreliable.size === 0 ? undefined : firstMountOn(file, unreliable);
}

/** Mounts that appeared since: nothing below them is read until they were probed. */
export function refuseAlso(points: readonly string[]): void {
  const added = points.filter((point) => !unreliable.has(point));
  if (added.length === 0) return;
  hung = new Set([...hung, ...added]);
  unreliable = new Set([...hung, ...mayHang]);
}

/** The first of these mount points on the way to a path, through every link. Asks nothing of a file system behind it. */
export function firstMountOn(file: string, points: ReadonlySet<string>): string | undefined {
  // What another process sees is on the same mounts, wherever its root directory is.
  const todo = segmentsOf(file.replace(/^.*\/proc\/\d+\/root(?=\/)/, ""));
  let done = "/";
  if (points.has(done)) return done;
  for (let links = 0; todo.length > 0; ) {
    const next = path.join(done, todo.pop() ?? "");
    if (points.has(next)) return next;
    const target = links < MAX_LINKS ? targetOf(next) : undefined;
    if (target === undefined) {
      done = next;
      continue;
    }
    links += 1;
    if (target.startsWith("/")) done = "/";
    todo.push(...segmentsOf(target));
  }
  return undefined;
}

/** The kernel's limit of links in one path. */
const MAX_LINKS = 40;

/** In reverse order, for pop(). */
function segmentsOf(file: string): string[] {
  return file.split("/").filter(Boolean).reverse();
}

function targetOf(file: string): string | undefined {
  try {
    return lstat(file, { throwIfNoEntry: false })?.isSymbolicLink() ? readlink(file) : undefined;
  } catch {
    // Permission denied, or no directory: whatever is done with the path fails as well.
    return undefined;
  }
}

/** Thousands of them are read in each scan, and they lead nowhere else. */
const OF_A_PROCESS = /^\/proc\/\d+(?:\/(?:stat|status|cgroup|environ|cmdline|ns\/\w+|fd(?:\/\d+)?))?$/;

/** Whether a child has to make calls for this path. Throws if its mount does not answer. */
function isForChild(file: unknown): boolean {
  if (unreliable.size === 0) return false;
  const name = String(file);
  if (OF_A_PROCESS.test(name)) return false;
  // Of both at once: the way to the one may lead through the other.
  const point = firstMountOn(name, unreliable);
  if (point !== undefined && hung.has(point)) throw timeout(point);
  return point !== undefined;
}

function timeout(point: string): Error {
  return Object.assign(new Error(`the file system mounted at ${point} does not answer`), { code: "ETIMEDOUT" });
}

function answerTo(request: MountRequest, file: string): MountAnswer {
  const answer = ask?.(request);
  if (answer === undefined) {
    late = firstMountOn(file, unreliable) ?? file;
    hung = unreliable;
    mayHang = new Set();
    throw timeout(late);
  }
  if (answer.error === undefined) return answer;
  throw Object.assign(new Error(`${answer.error}: ${request.call} ${file}`), { code: answer.error });
}

type PathCall = (file: never, ...more: never[]) => unknown;

function guarded<Call extends PathCall>(call: Call, byChild: (file: string, ...more: unknown[]) => unknown): Call {
  return ((file: never, ...more: never[]) =>
    isForChild(file) ? byChild(String(file), ...more) : call(file, ...more)) as Call;
}

function statsByChild(call: "lstat" | "stat") {
  return (file: string, options?: unknown): Stats | undefined => {
    try {
      return statsOf(answerTo({ call, file }, file));
    } catch (error) {
      const isOptional = (options as { throwIfNoEntry?: boolean } | undefined)?.throwIfNoEntry === false;
      if (isOptional && (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  };
}

const TYPE = 0o170000;

/** As far as readers use it. */
function statsOf({ stats }: MountAnswer): Stats {
  const fields = stats as MountStats;
  const is = (type: number) => () => (fields.mode & TYPE) === type;
  return {
    ...fields,
    // Node rounds as well; a Date cuts the fraction off.
    mtime: new Date(Math.round(fields.mtimeMs)),
    ctime: new Date(Math.round(fields.ctimeMs)),
    isFile: is(0o100000),
    isDirectory: is(0o040000),
    isSymbolicLink: is(0o120000),
    isSocket: is(0o140000),
    isCharacterDevice: is(0o020000),
  } as Stats;
}

export const lstatSync = guarded(lstat, statsByChild("lstat"));
export const statSync = guarded(stat, statsByChild("stat"));
export const statfsSync = guarded(statfs, (file) => answerTo({ call: "statfs", file }, file));
export const readlinkSync = guarded(readlink, (file) => answerTo({ call: "readlink", file }, file).target);

/** False as well for a path on a mount that does not answer: that mount is reported. */
export function existsSync(file: string): boolean {
  try {
    return isForChild(file) ? answerTo({ call: "stat", file }, file).stats !== undefined : exists(file);
  } catch {
    return false;
  }
}

export interface OpenFile {
  stat(): Stats;
  /** Returns how many bytes were read. A position of null is where the last read ended. */
  read(buffer: Uint8Array, offset: number, length: number, position: number | null): number;
  close(): void;
}

export function openFile(file: string, flags: number): OpenFile {
  if (!isForChild(file)) return new FileHere(open(file, flags));
  return new FileOfChild(answerTo({ call: "open", file, flags }, file).handle ?? 0, file);
}

/** A class, because thousands are opened in each scan. */
class FileHere implements OpenFile {
  private readonly descriptor: number;

  constructor(descriptor: number) {
    this.descriptor = descriptor;
  }

  stat(): Stats {
    return fstatSync(this.descriptor);
  }

  read(buffer: Uint8Array, offset: number, length: number, position: number | null): number {
    return readSync(this.descriptor, buffer, offset, length, position);
  }

  close(): void {
    closeSync(this.descriptor);
  }
}

const MAX_BYTES_AT_ONCE = 64 * 1024;

class FileOfChild implements OpenFile {
  private readonly handle: number;
  private readonly file: string;
  private end = 0;

  constructor(handle: number, file: string) {
    this.handle = handle;
    this.file = file;
  }

  stat(): Stats {
    return statsOf(answerTo({ call: "fstat", handle: this.handle }, this.file));
  }

  read(buffer: Uint8Array, offset: number, wanted: number, position: number | null): number {
    const { handle } = this;
    const request: MountRequest = {
      call: "read",
      handle,
      position: position ?? this.end,
      length: Math.min(wanted, MAX_BYTES_AT_ONCE),
    };
    const bytes = Buffer.from(answerTo(request, this.file).bytes ?? "", "base64");
    buffer.set(bytes, offset);
    this.end = request.position + bytes.length;
    return bytes.length;
  }

  close(): void {
    release(this.handle);
  }
}

/** A child that was late is gone, with all that it had open. */
function release(handle: number): void {
  if (mayHang.size > 0) ask?.({ call: "close", handle });
}

export interface DirectoryEntry {
  readonly name: string;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

export interface OpenDirectory {
  /** Null at the end. */
  readSync(): DirectoryEntry | null;
  closeSync(): void;
}

export function opendirSync(file: string, options: Parameters<typeof opendir>[1]): OpenDirectory | Dir {
  if (!isForChild(file)) return opendir(file, options);
  const { handle = 0 } = answerTo({ call: "opendir", file }, file);
  let entries: DirectoryEntry[] = [];
  return {
    readSync: () => {
      if (entries.length === 0)
        entries = (answerTo({ call: "entries", handle }, file).entries ?? []).map(entryOf).reverse();
      return entries.pop() ?? null;
    },
    closeSync: () => release(handle),
  };
}

function entryOf([name, type]: readonly [string, EntryType]): DirectoryEntry {
  return {
    name,
    isFile: () => type === "file",
    isDirectory: () => type === "directory",
    isSymbolicLink: () => type === "symlink",
  };
}
