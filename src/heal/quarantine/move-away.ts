import { rename, unlink } from "node:fs/promises";
import { errorCode } from "../../host/system-error.ts";
import { copyFileSafely } from "../files/copy-file.ts";
import { hasContent, lookAt, sameIdentity } from "../files/file-identity.ts";
import type { HeldDirectory } from "../files/held-directory.ts";
import { syncDirectory } from "../files/sync-directory.ts";
import type { FileState } from "../journal/entry.ts";
import { giveBack } from "./give-back.ts";
import { makeEntryDirectory, type Places, removeEntryDirectory } from "./place.ts";

/**
 * - `moved`: the file is in quarantine and nowhere else.
 * - `changed`: what lies there is not what was proven; it lies there still.
 * - `caught`: somebody replaced the file at the very moment and has since put another one in its place, so that what
 *   was caught could not be given back. It is in quarantine, or beside the file under its aside name.
 */
export type Moved = "moved" | "changed" | "caught";

/** Moves the proven file into quarantine. Throws what the system throws; settleQuarantine then tidies up. */
export async function moveAway(parent: HeldDirectory, places: Places, before: FileState): Promise<Moved> {
  const found = lookAt(parent.entry(places.name));
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
    // Another file system, or another bind mount of the same one, as volumes of a container are.
    if (errorCode(thrown) === "EXDEV") return copyAndRemove(parent, places, before);
    throw thrown;
  }
  const arrived = lookAt(places.file);
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
  const taken = lookAt(aside);
  if (taken.what === "file" && sameIdentity(taken.identity, before)) {
    await unlink(aside);
    return "moved";
  }
  if (!(await giveBack(aside, parent.entry(places.name)))) return "caught";
  await unlink(places.file);
  return "changed";
}
