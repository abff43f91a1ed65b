import { fsync } from "node:fs";
import { promisify } from "node:util";
import { errorLabel } from "../host/system-error.ts";
import { closeSoon, openDirectory, openEntry } from "./open-entry.ts";
import { turns } from "./turns.ts";

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
  /** The longest that one fsync took: about as long as a commit of the file system's journal. */
  readonly slowestMs: number;
}

const syncFd = promisify(fsync);

/** fsyncs side by side, also in several directories, share one commit of the file system's journal. More threads than these belong to everybody else. */
const inTurn = turns(4);

type Entry = "synced" | "directory" | "passed" | { readonly code: string };

type OnSync = (milliseconds: number) => void;

/** Syncs these entries of a directory, then the directory, so that names survive as well. */
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

/** The error's code, undefined when it is on disk. A file system that knows no fsync (EINVAL) keeps nothing to lose. */
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
