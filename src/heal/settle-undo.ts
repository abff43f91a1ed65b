import { unlink } from "node:fs/promises";
import { hasContent, lookAt } from "./file-identity.ts";
import type { HealContext } from "./heal-context.ts";
import { holdDirectory } from "./held-directory.ts";
import type { JournalId } from "./journal-id.ts";
import { placesOf, removeEntryDirectory } from "./quarantine-place.ts";
import type { QuarantineAction, Settled } from "./settle-quarantine.ts";
import { unlinkIfThere } from "./unlink-if-there.ts";

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
