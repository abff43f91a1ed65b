import {
  closeSync,
  constants,
  type Dir,
  fstatSync,
  lstatSync,
  opendirSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { errorLabel } from "./source.ts";

/** The child's part of reading a file system that may stop answering: see mount-reader.ts. */

export type MountRequest =
  | { readonly call: "lstat" | "stat" | "statfs" | "readlink" | "opendir"; readonly file: string }
  | { readonly call: "open"; readonly file: string; readonly flags: number }
  | { readonly call: "read"; readonly handle: number; readonly position: number; readonly length: number }
  | { readonly call: "fstat" | "entries" | "close"; readonly handle: number };

/** The fields of Stats that readers use. */
export type MountStats = Pick<Stats, "dev" | "ino" | "mode" | "uid" | "gid" | "nlink" | "size" | "mtimeMs" | "ctimeMs">;

export type EntryType = "file" | "directory" | "symlink" | "unknown";

export interface MountAnswer {
  /** The code of an error. */
  readonly error?: string;
  readonly stats?: MountStats;
  readonly type?: number;
  readonly target?: string;
  readonly handle?: number;
  /** Of a directory; none at its end. */
  readonly entries?: readonly (readonly [string, EntryType])[];
  /** Base64. */
  readonly bytes?: string;
}

const ENTRIES_AT_ONCE = 1000;

const files = new Set<number>();
const directories = new Map<number, Dir>();
let opened = -1;

export function answerMountRequest(request: MountRequest): MountAnswer {
  try {
    return answer(request);
  } catch (error) {
    return { error: errorLabel(error) };
  }
}

function answer(request: MountRequest): MountAnswer {
  switch (request.call) {
    case "lstat":
      return { stats: fieldsOf(lstatSync(request.file)) };
    case "stat":
      return { stats: fieldsOf(statSync(request.file)) };
    case "statfs":
      return { type: statfsSync(request.file).type };
    case "readlink":
      return { target: readlinkSync(request.file) };
    case "open":
      return { handle: keptFile(openSync(request.file, request.flags)) };
    case "fstat":
      return { stats: fieldsOf(fstatSync(request.handle)) };
    case "read":
      return { bytes: bytesAt(request) };
    case "opendir":
      return { handle: keptDirectory(opendirSync(request.file)) };
    case "entries":
      return { entries: nextEntries(request.handle) };
    case "close":
      close(request.handle);
      return {};
  }
}

function keptFile(descriptor: number): number {
  files.add(descriptor);
  return descriptor;
}

/** Negative: they have no descriptor here. */
function keptDirectory(dir: Dir): number {
  directories.set(opened, dir);
  return opened--;
}

function close(handle: number): void {
  if (files.delete(handle)) closeSync(handle);
  directories.get(handle)?.closeSync();
  directories.delete(handle);
}

function fieldsOf({ dev, ino, mode, uid, gid, nlink, size, mtimeMs, ctimeMs }: Stats): MountStats {
  return { dev, ino, mode, uid, gid, nlink, size, mtimeMs, ctimeMs };
}

function bytesAt({ handle, position, length }: Extract<MountRequest, { call: "read" }>): string {
  const buffer = Buffer.allocUnsafe(length);
  return buffer.toString("base64", 0, readSync(handle, buffer, 0, length, position));
}

function nextEntries(handle: number): NonNullable<MountAnswer["entries"]> {
  const found: [string, EntryType][] = [];
  const dir = directories.get(handle);
  while (found.length < ENTRIES_AT_ONCE) {
    const entry = dir?.readSync() ?? null;
    if (entry === null) break;
    const type = entry.isFile() ? "file" : entry.isDirectory() ? "directory" : "unknown";
    found.push([entry.name, entry.isSymbolicLink() ? "symlink" : type]);
  }
  return found;
}

const MOST_PROBED = 100;

/** Whatever the file system answers, an error included, it does answer. */
export function answersProbe(file: string): true {
  try {
    const stats = statSync(file);
    statfsSync(file);
    if (stats.isFile()) closeSync(openSync(file, constants.O_RDONLY | constants.O_NONBLOCK));
    if (!stats.isDirectory()) return true;
    const dir = opendirSync(file);
    for (let count = 0; count < MOST_PROBED; count += 1) {
      const entry = dir.readSync();
      if (entry === null) break;
      if (entry.isFile()) closeSync(openSync(`${file}/${entry.name}`, constants.O_RDONLY | constants.O_NONBLOCK));
    }
    dir.closeSync();
  } catch {
    // There is no such file, or no permission.
  }
  return true;
}
