import { unlink } from "node:fs/promises";
import type { HealContext } from "../execution/heal-context.ts";
import { hasContent, lookAt } from "../files/file-identity.ts";
import { holdDirectory } from "../files/held-directory.ts";
import { unlinkIfThere } from "../files/unlink-if-there.ts";
import { placesOf, removeEntryDirectory } from "../quarantine/place.ts";
import type { JournalId } from "./id.ts";
import type { QuarantineAction, Settled } from "./settle-quarantine.ts";

/** Completes or takes back an undo that was interrupted. A file leaves quarantine only when it is back at its place. */
export async function settleUndo(context: HealContext, id: JournalId, action: QuarantineAction): Promise<Settled> {
  const places = placesOf(context.stateDir, id, action.path);
  const kept = lookAt(places.file);
  if (kept.what === "nothing") {
    await removeEntryDirectory(places.directory);
    return { how: "undone", detail: `${action.path} had been put back.` };
  }
  const parent = holdDirectory(context.hostRoot, places.parent);
  if (!parent.ok) return { how: "unsettled", detail: parent.refusal.message };
  const stillKept = {
    how: "completed",
    detail: `${action.path} had not been put back and is still in quarantine.`,
  } as const;
  if (parent.value === undefined) return stillKept;
  try {
    await unlinkIfThere(parent.value.entry(places.asideName));
    if (!(await hasContent(parent.value.entry(places.name), action.before))) return stillKept;
    await parent.value.sync();
    await unlink(places.file);
    await removeEntryDirectory(places.directory);
    return { how: "undone", detail: `${action.path} had been put back.` };
  } finally {
    parent.value.close();
  }
}
