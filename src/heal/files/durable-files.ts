import { closeSync, constants, fsync, mkdirSync, openSync, renameSync } from "node:fs";
import { open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "../../host/source.ts";

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
  try {
    await unlink(path);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
}
