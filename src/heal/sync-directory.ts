import { constants } from "node:fs";
import { open } from "node:fs/promises";

/** A new, renamed or removed name survives a power cut only once its directory has been synced too. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
