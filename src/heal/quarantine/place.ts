import { mkdir, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorCode } from "../../host/system-error.ts";
import type { StateDir } from "../files/state-dir.ts";
import { syncDirectory } from "../files/sync-directory.ts";
import type { JournalId } from "../journal/id.ts";

/** Where the file of one journal entry lies, before and after. */
export interface Places {
  /** The directory it comes from, as the host sees it, and its name there. */
  readonly parent: string;
  readonly name: string;
  /**
   * Its name in that directory for the moment between "the copy is safe" and "the original is gone". Taking it aside
   * first makes sure that what is unlinked is what was copied, not what somebody put there meanwhile.
   */
  readonly asideName: string;
  /** The entry's own directory in quarantine, and the file in it. */
  readonly directory: string;
  readonly file: string;
}

export function placesOf(stateDir: StateDir, id: JournalId, path: string): Places {
  const directory = join(stateDir.quarantine, id);
  const name = basename(path);
  return { parent: dirname(path), name, asideName: `.unghost-${id}`, directory, file: join(directory, name) };
}

export async function makeEntryDirectory(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 });
  await syncDirectory(dirname(directory));
}

/** Removes the entry's directory once it is empty; what is still in it stays. */
export async function removeEntryDirectory(directory: string): Promise<void> {
  try {
    await rmdir(directory);
    await syncDirectory(dirname(directory));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code !== "ENOENT" && code !== "ENOTEMPTY") throw thrown;
  }
}
