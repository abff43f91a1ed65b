import { closeSync, constants, fsync, openSync } from "node:fs";
import { promisify } from "node:util";

/** Opening takes microseconds and is done at once; only what waits for a disk is worth a thread. */
export const syncDescriptor: (fd: number) => Promise<void> = promisify(fsync);

/** A new, renamed or removed name survives a power cut only once its directory has been synced too. */
export async function syncDirectory(path: string): Promise<void> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await syncDescriptor(fd);
  } finally {
    closeSync(fd);
  }
}
