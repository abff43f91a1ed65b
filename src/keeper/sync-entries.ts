import { close, constants, fstat, fsync, lstat, open } from "node:fs";
import { promisify } from "node:util";
import { errorLabel } from "../host/system-error.ts";

/** What became of the entries of one directory. Nothing is ever written: files are opened for reading and fsynced. */
export interface SyncedDirectory {
  /** Files that are on disk now, content and name. */
  readonly synced: readonly string[];
  /** Entries that are directories: there may be files to keep in them. */
  readonly directories: readonly string[];
  /** Files that could not be synced, with the error's code. */
  readonly failed: readonly { readonly name: string; readonly code: string }[];
  /** The directory itself was removed, replaced by something else, or cannot be opened. */
  readonly isGone: boolean;
}

/** Every call that can wait for a disk runs in the engine's thread pool: only the keeper itself waits. */
const openFile = promisify(open);
const statFd = promisify(fstat);
const statEntry = promisify(lstat);
const syncFd = promisify(fsync);
const closeFd = promisify(close);

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Neither follows a link, nor waits for the other end of a FIFO, nor takes a terminal. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** fsyncs side by side, also in several directories, share one commit of the file system's journal. More threads than these belong to everybody else. */
const AT_ONCE = 4;

/** No plugin writes so much about a pod; whatever it is, its sync would hold the disk up for everybody. */
const MOST_BYTES = 16 * 1024 * 1024;

type Entry = "synced" | "directory" | "passed" | { readonly code: string };

/** Syncs these entries of a directory, then the directory, so that names survive as well. */
export async function syncEntries(dir: string, names: Iterable<string>): Promise<SyncedDirectory> {
  let dirFd: number;
  try {
    dirFd = await openFile(dir, DIRECTORY);
  } catch {
    return { synced: [], directories: [], failed: [], isGone: true };
  }
  try {
    const entries = await Promise.all(
      [...names].map(async (name) => [name, await inTurn(() => syncEntry(dirFd, name))] as const),
    );
    const failed = entries.flatMap(([name, entry]) => (typeof entry === "object" ? [{ name, code: entry.code }] : []));
    const ofKind = (kind: Entry): readonly string[] =>
      entries.flatMap(([name, entry]) => (entry === kind ? [name] : []));
    const unsynced = await inTurn(() => syncOpen(dirFd));
    const done = { directories: ofKind("directory"), isGone: false };
    if (unsynced === undefined) return { ...done, synced: ofKind("synced"), failed };
    return { ...done, synced: [], failed: [...failed, { name: ".", code: unsynced }] };
  } finally {
    await closeFd(dirFd);
  }
}

/** Reached through the open directory, so that no part of the path can be swapped meanwhile. */
async function syncEntry(dirFd: number, name: string): Promise<Entry> {
  const path = `/proc/self/fd/${dirFd}/${name}`;
  let fd: number;
  try {
    // Before it is opened: opening a device can set it going.
    const stats = await statEntry(path);
    if (stats.isDirectory()) return "directory";
    if (!stats.isFile()) return "passed";
    fd = await openFile(path, FILE);
  } catch (error) {
    const code = errorLabel(error);
    // Removed, or replaced by a link or a socket: whatever came in its place has a notification of its own.
    return ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(code) ? "passed" : { code };
  }
  try {
    const stats = await statFd(fd);
    if (!stats.isFile() || stats.size > MOST_BYTES) return "passed";
    const code = await syncOpen(fd);
    return code === undefined ? "synced" : { code };
  } finally {
    await closeFd(fd);
  }
}

/** The error's code, undefined when it is on disk. A file system that knows no fsync (EINVAL) keeps nothing to lose. */
async function syncOpen(fd: number): Promise<string | undefined> {
  try {
    await syncFd(fd);
    return undefined;
  } catch (error) {
    const code = errorLabel(error);
    return code === "EINVAL" ? undefined : code;
  }
}

let free = AT_ONCE;
const queue: (() => void)[] = [];

/** Waits for one of the threads that the keeper may use. */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (free > 0) free -= 1;
  else await new Promise<void>((resolve) => queue.push(resolve));
  try {
    return await work();
  } finally {
    const next = queue.shift();
    if (next === undefined) free += 1;
    else next();
  }
}
