import { link, unlink } from "node:fs/promises";
import { errorCode } from "../../host/system-error.ts";
import { copyFileSafely } from "../files/copy-file.ts";
import type { HeldDirectory } from "../files/held-directory.ts";
import { syncDirectory } from "../files/sync-directory.ts";
import { unlinkIfThere } from "../files/unlink-if-there.ts";
import type { FileState } from "../journal/entry.ts";
import { giveBack } from "./give-back.ts";
import { type Places, removeEntryDirectory } from "./place.ts";

/**
 * Puts a quarantined file back under its old name, which must be free: false when somebody took it. The file leaves
 * quarantine only once it is safe at its place, so that at every moment it lies in at least one of the two.
 */
export async function restoreFile(parent: HeldDirectory, places: Places, before: FileState): Promise<boolean> {
  if (!(await placeFile(parent, places, before))) return false;
  await parent.sync();
  await unlink(places.file);
  await syncDirectory(places.directory);
  await removeEntryDirectory(places.directory);
  return true;
}

async function placeFile(parent: HeldDirectory, places: Places, before: FileState): Promise<boolean> {
  try {
    await link(places.file, parent.entry(places.name));
    return true;
  } catch (thrown) {
    if (errorCode(thrown) === "EEXIST") return false;
    if (errorCode(thrown) !== "EXDEV") throw thrown;
  }
  const aside = parent.entry(places.asideName);
  await unlinkIfThere(aside);
  if (!(await copyFileSafely(places.file, aside, before)))
    throw new Error("the copy differs from what is in quarantine");
  const placed = await giveBack(aside, parent.entry(places.name));
  if (!placed) await unlink(aside);
  return placed;
}
