import { fsync } from "node:fs";
import { promisify } from "node:util";
import { errorLabel } from "../host/source.ts";
import { closeSoon, openDirectory, openEntry } from "./open-entry.ts";
import { takingTurns } from "./turns.ts";

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
      [...names].map(async (name) => [name, await inTurn(() => syncEntry(dirFd, name, onSync))] as const),
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
