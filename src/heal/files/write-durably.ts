import { mkdirSync, renameSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";

/** Written beside and renamed, synced: half a file is none. */
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
