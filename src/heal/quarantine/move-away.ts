import { link, mkdir, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { FileState } from "../../evidence/journal-action.ts";
import { errorCode } from "../../host/source.ts";
import type { JournalId } from "../journal/entry.ts";
import { syncDirectory } from "../state/durable-files.ts";
import type { StateDir } from "../state/state-layout.ts";
import { copyFileSafely, type HeldDirectory, hasContent, identify, sameIdentity } from "./file-identity.ts";

/**
 * - `moved`: the file is in quarantine and nowhere else.
 * - `changed`: the file at the path is not the proven one; it was not moved.
 * - `caught`: the file was replaced at that moment and another one created at its path since, so that the moved file
 *   could not be put back. It is in quarantine, or beside the path under its aside name.
 */
type Moved = "moved" | "changed" | "caught";

/** Moves the proven file into quarantine. Throws system errors; settleQuarantine then cleans up. */
export async function moveAway(parent: HeldDirectory, places: Places, before: FileState): Promise<Moved> {
  const found = identify(parent.entry(places.name));
  if (found.what !== "file" || !sameIdentity(found.identity, before)) return "changed";
  await makeEntryDirectory(places.directory);
  const moved = await moveOrCopy(parent, places, before);
  await syncDirectory(places.directory);
  await parent.sync();
  if (moved === "changed") await removeEntryDirectory(places.directory);
  return moved;
}

async function moveOrCopy(parent: HeldDirectory, places: Places, before: FileState): Promise<Moved> {
  try {
    await rename(parent.entry(places.name), places.file);
  } catch (thrown) {
    // Another file system, or another bind mount of the same one, like volumes of a container.
    if (errorCode(thrown) === "EXDEV") return copyAndRemove(parent, places, before);
    throw thrown;
  }
  const arrived = identify(places.file);
  const proven = arrived.what === "file" && sameIdentity(arrived.identity, before);
  if (proven && (await hasContent(places.file, before))) return "moved";
  return (await giveBack(places.file, parent.entry(places.name))) ? "changed" : "caught";
}

async function copyAndRemove(parent: HeldDirectory, places: Places, before: FileState): Promise<Moved> {
  if (!(await copyFileSafely(parent.entry(places.name), places.file, before))) {
    await unlink(places.file);
    return "changed";
  }
  await syncDirectory(places.directory);
  const aside = parent.entry(places.asideName);
  await rename(parent.entry(places.name), aside);
  const taken = identify(aside);
  if (taken.what === "file" && sameIdentity(taken.identity, before)) {
    await unlink(aside);
    return "moved";
  }
  if (!(await giveBack(aside, parent.entry(places.name)))) return "caught";
  await unlink(places.file);
  return "changed";
}

/**
 * Puts a file at a path that must be free; returns false if it is not. link() refuses an existing name, while rename()
 * would silently replace a file that was just written there.
 */
export async function giveBack(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
  } catch (thrown) {
    if (errorCode(thrown) === "EEXIST") return false;
    throw thrown;
  }
  await unlink(from);
  return true;
}

/** The paths of one journal entry's file, before and after. */
export interface Places {
  /** The directory it comes from, as the host sees it, and its name there. */
  readonly parent: string;
  readonly name: string;
  /**
   * Its name in that directory between "the copy is synced" and "the original is deleted". Renaming it first ensures
   * that the unlinked file is the copied one, not one that was written meanwhile.
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

async function makeEntryDirectory(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 });
  await syncDirectory(dirname(directory));
}

/** Removes the entry's directory if it is empty. */
export async function removeEntryDirectory(directory: string): Promise<void> {
  try {
    await rmdir(directory);
    await syncDirectory(dirname(directory));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code !== "ENOENT" && code !== "ENOTEMPTY") throw thrown;
  }
}
