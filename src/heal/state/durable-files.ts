import { closeSync, constants, fsync, mkdirSync, openSync, renameSync } from "node:fs";
import { open, statfs, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describeError, errorCode } from "../../host/source.ts";
import { type Outcome, ok, refuse } from "./outcome.ts";

/** Written under another name, synced and renamed, so that the file is never incomplete. */
export async function writeDurably(path: string, text: string): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = `${path}.new`;
  const file = await open(fresh, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  renameSync(fresh, path);
}

/** Opening takes microseconds and is synchronous; only operations that wait for a disk use a thread. */
export function syncDescriptor(fd: number): Promise<void> {
  return promisify(fsync)(fd);
}

/** A new, renamed or removed name survives a power cut only after a sync of its directory. */
export async function syncDirectory(path: string): Promise<void> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await syncDescriptor(fd);
  } finally {
    closeSync(fd);
  }
}

export async function unlinkIfThere(path: string): Promise<void> {
  await ifThere(unlink(path));
}

/** Undefined if its file does not exist. */
export async function ifThere<T>(done: Promise<T>): Promise<T | undefined> {
  try {
    return await done;
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

const DEFAULT_ROOM = {
  /** Bytes that must be free for unprivileged users: one full journal and the same again for copies. */
  freeBytes: 8 * 1024 * 1024,
  /** Bytes that are written and synced as a trial. */
  trialBytes: 64 * 1024,
};

export type RoomNeeded = Readonly<typeof DEFAULT_ROOM>;

/**
 * Proves that the journal can be written before any change of the node. statfs is not enough: quotas, read-only
 * remounts after a disk error and thin volumes show only in a synced write.
 */
export async function ensureRoom(directory: string, needed: RoomNeeded = DEFAULT_ROOM): Promise<Outcome<void>> {
  try {
    const stats = await statfs(directory);
    // Without the free bytes: they change all the time, and the agent logs the same message only once.
    if (stats.bavail * stats.bsize < needed.freeBytes) {
      return full(directory, `less than ${Math.floor(needed.freeBytes / 1024)} KiB are free`);
    }
    // File systems with dynamic inodes (btrfs, tmpfs without a limit) report none.
    if (stats.files > 0 && stats.ffree === 0) return full(directory, "no inode is left");
    await writeTrial(join(directory, "trial"), needed.trialBytes);
    return ok(undefined);
  } catch (thrown) {
    return (
      refusalIfFull(directory, thrown) ??
      refuse(
        `${directory} cannot be written, ${describeError(thrown)}.`,
        "Repair or remount that file system, or choose another --state-dir.",
      )
    );
  }
}

/** Undefined if the error has another cause. */
export function refusalIfFull(directory: string, thrown: unknown): ReturnType<typeof refuse> | undefined {
  const code = errorCode(thrown);
  return code === "ENOSPC" || code === "EDQUOT" ? full(directory, describeError(thrown)) : undefined;
}

async function writeTrial(path: string, bytes: number): Promise<void> {
  const handle = await open(
    path,
    constants.O_CREAT | constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await handle.writeFile(Buffer.alloc(bytes, "unghost "));
    await handle.sync();
  } finally {
    await handle.close();
    // Another run may do the same trial at this moment.
    await unlinkIfThere(path);
  }
}

function full(directory: string, seen: string): ReturnType<typeof refuse> {
  return refuse(
    `The file system of ${directory} is full or nearly so (${seen}).`,
    "Free some space there, or choose a --state-dir on another file system.",
    "disk",
  );
}
