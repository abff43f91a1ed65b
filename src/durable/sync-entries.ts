import { close, closeSync, constants, fstatSync, fsync, lstatSync, openSync, read } from "node:fs";
import { promisify } from "node:util";
import { takingTurns } from "../host/concurrency.ts";
import { unreliableMountOn } from "../host/guarded-fs.ts";
import { pause } from "../host/poll.ts";
import { errorLabel } from "../host/source.ts";

/**
 * Entries are opened synchronously, without the engine's thread pool: on a node short of CPU time each hop takes as
 * long as a concurrent scan. It does not wait for the disk, because recently written or listed entries are in the page
 * cache. Reading, syncing and closing can wait for the disk, and use the thread pool.
 */
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Neither follows a link, nor blocks on a FIFO, nor takes a terminal. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** No plugin writes this much about a pod, and syncing it would block the disk for all processes. */
const MAX_BYTES = 16 * 1024 * 1024;

type OpenedEntry =
  /** The caller closes it. */
  | { readonly kind: "file"; readonly fd: number }
  | { readonly kind: "directory" }
  /** Not a plugin's file, or gone. */
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly code: string };

/** Asynchronous, because closing may free the blocks of a removed file and wait for the disk. */
function closeSoon(fd: number): void {
  close(fd, () => undefined);
}

/** Returns undefined if it was removed, replaced, or cannot be opened. */
function openDirectory(path: string): number | undefined {
  try {
    return openSync(path, DIRECTORY);
  } catch {
    return undefined;
  }
}

/** Opened through the directory's descriptor, so that no part of the path can be swapped meanwhile. Read-only. */
function openEntry(dirFd: number, name: string, moreFlags = 0): OpenedEntry {
  const path = `/proc/self/fd/${dirFd}/${name}`;
  let fd: number;
  try {
    // Checked before open, because opening a device can have side effects.
    const stats = lstatSync(path);
    if (stats.isDirectory()) return { kind: "directory" };
    if (!stats.isFile()) return { kind: "passed" };
    fd = openSync(path, FILE | moreFlags);
  } catch (error) {
    const code = errorLabel(error);
    // Removed, or replaced by a link or a socket: the replacement has its own notification.
    return ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(code) ? { kind: "passed" } : { kind: "failed", code };
  }
  const stats = fstatSync(fd);
  if (stats.isFile() && stats.size <= MAX_BYTES) return { kind: "file", fd };
  closeSync(fd);
  return { kind: "passed" };
}

/** The result for the entries of one directory. Nothing is written: files are opened for reading and fsynced. */
export interface SyncedDirectory {
  /** Files whose content and name are on disk now. */
  readonly synced: readonly string[];
  /** Entries that are directories, which may contain files to sync. */
  readonly directories: readonly string[];
  /** Files that could not be synced, with the error's code. */
  readonly failed: readonly { readonly name: string; readonly code: string }[];
  /** The directory was removed, replaced, or cannot be opened. */
  readonly isGone: boolean;
  /** The slowest fsync: about the time of a journal commit. */
  readonly slowestMs: number;
}

const syncFd = promisify(fsync);

/**
 * Concurrent fsyncs, also in several directories, share one journal commit. The limit leaves the other threads to the
 * rest of the process.
 */
const inTurn = takingTurns(4);

type Entry = "synced" | "directory" | "passed" | { readonly code: string };

type OnSync = (milliseconds: number) => void;

/** Syncs these entries of a directory, then the directory itself, so that names survive as well. */
export async function syncEntries(dir: string, names: Iterable<string>): Promise<SyncedDirectory> {
  const dirFd = openDirectory(dir);
  if (dirFd === undefined) return { synced: [], directories: [], failed: [], isGone: true, slowestMs: 0 };
  let slowestMs = 0;
  const onSync = (milliseconds: number): void => {
    slowestMs = Math.max(slowestMs, milliseconds);
  };
  try {
    const entries = await Promise.all(
      reliable(dir, names).map(async (name) => [name, await inTurn(() => syncEntry(dirFd, name, onSync))] as const),
    );
    const failed = entries.flatMap(([name, entry]) => (typeof entry === "object" ? [{ name, code: entry.code }] : []));
    const ofKind = (kind: Entry): readonly string[] =>
      entries.flatMap(([name, entry]) => (entry === kind ? [name] : []));
    const unsynced = await inTurn(() => syncOpen(dirFd, onSync));
    const done = { directories: ofKind("directory"), isGone: false, slowestMs };
    if (unsynced === undefined) return { ...done, synced: ofKind("synced"), failed };
    return { ...done, synced: [], failed: [...failed, { name: ".", code: unsynced }] };
  } finally {
    closeSoon(dirFd);
  }
}

/** Without those at which a file system is mounted that may stop answering. */
function reliable(dir: string, names: Iterable<string>): readonly string[] {
  return [...names].filter((name) => unreliableMountOn(`${dir}/${name}`) === undefined);
}

async function syncEntry(dirFd: number, name: string, onSync: OnSync): Promise<Entry> {
  const entry = openEntry(dirFd, name);
  if (entry.kind === "failed") return { code: entry.code };
  if (entry.kind !== "file") return entry.kind;
  try {
    const code = await syncOpen(entry.fd, onSync);
    return code === undefined ? "synced" : { code };
  } finally {
    closeSoon(entry.fd);
  }
}

/** Returns the error code, or undefined on success. A file system without fsync (EINVAL) has nothing to lose. */
async function syncOpen(fd: number, onSync: OnSync): Promise<string | undefined> {
  const startedAt = performance.now();
  try {
    await syncFd(fd);
    return undefined;
  } catch (error) {
    const code = errorLabel(error);
    return code === "EINVAL" ? undefined : code;
  } finally {
    onSync(performance.now() - startedAt);
  }
}

const readFd = promisify(read);

/** A separate limit: a slow fsync must not delay writeback. */
const writebackInTurn = takingTurns(4);

/** The data is discarded. No plugin writes more than this about a pod. */
const block = Buffer.alloc(64 * 1024);

/**
 * Makes the file system write the content of these files back, without a sync. Otherwise it keeps new content in memory
 * for up to 30 seconds, and a journal commit meanwhile, for any fsync of another process, makes the name of an empty
 * file durable. Once the content has its blocks, a commit includes both or neither.
 *
 * A direct read causes that: the file system writes dirty pages before it reads the disk. It waits only for this file's
 * content, neither for a commit nor for a flush of the disk's cache, so no other process waits for it.
 *
 * Returns whether some of the names are directories, which may contain files to sync.
 */
export async function startWriteback(
  dir: string,
  names: Iterable<string>,
): Promise<{ readonly hasDirectories: boolean }> {
  const dirFd = openDirectory(dir);
  if (dirFd === undefined) return { hasDirectories: false };
  try {
    const kinds = await Promise.all(
      reliable(dir, names).map((name) => writebackInTurn(() => readDirectly(dirFd, name))),
    );
    return { hasDirectories: kinds.includes("directory") };
  } finally {
    closeSoon(dirFd);
  }
}

async function readDirectly(dirFd: number, name: string): Promise<OpenedEntry["kind"]> {
  const entry = openEntry(dirFd, name, constants.O_DIRECT);
  if (entry.kind !== "file") return entry.kind;
  try {
    await readFd(entry.fd, block, 0, block.length, 0);
  } catch {
    // A file system without direct reads: the following sync writes it.
  } finally {
    closeSoon(entry.fd);
  }
  return entry.kind;
}

/** A new file is noticed before it has content: plugins write and close within this time. */
export const SETTLE_MS = 5;
/** More files, while the disk hangs, are left to the sync. */
const MAX_PENDING = 1024;
/**
 * A disk that takes longer for a batch is slow, and writeback would keep it busy: plugins that remove a file wait until
 * its writeback is done. So the queue pauses three times as long as the batch took. Files that are removed meanwhile
 * are never written.
 */
const SLOW_MS = 25;
const PAUSE_PER_WRITEBACK = 3;
const LONGEST_PAUSE_MS = 1000;

/** Starts writeback of noticed files soon, however long the current sync takes. */
export function writebackQueue(
  /** Called when a directory was noticed. */
  onDirectory: () => void,
  start: typeof startWriteback = startWriteback,
  wait: typeof pause = pause,
) {
  let pending = new Map<string, Set<string>>();
  let size = 0;
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    let pauseMs = SETTLE_MS;
    while (size > 0) {
      await wait(pauseMs);
      const startedAt = performance.now();
      const batch = pending;
      pending = new Map();
      size = 0;
      const started = await Promise.all([...batch].map(([dir, names]) => start(dir, names)));
      if (started.some(({ hasDirectories }) => hasDirectories)) onDirectory();
      const tookMs = performance.now() - startedAt;
      pauseMs = tookMs < SLOW_MS ? SETTLE_MS : Math.min(tookMs * PAUSE_PER_WRITEBACK, LONGEST_PAUSE_MS);
    }
    isRunning = false;
  }

  return {
    notice: (dir: string, name: string) => {
      const names = pending.get(dir) ?? new Set();
      if (size === MAX_PENDING || names.has(name)) return;
      pending.set(dir, names.add(name));
      size += 1;
      if (!isRunning) void run();
    },
    close: () => {
      pending = new Map();
      size = 0;
    },
  };
}

/** Wakes one loop. If it is raised while the loop works, the next wait ends at once. */
export function signal() {
  let raised = Promise.withResolvers<void>();
  return {
    raise: () => raised.resolve(),
    /** Resolves when it is raised, or after `mostMs`. */
    wait: async (mostMs?: number) => {
      await Promise.race(mostMs === undefined ? [raised.promise] : [raised.promise, pause(mostMs)]);
      raised = Promise.withResolvers();
    },
  };
}
