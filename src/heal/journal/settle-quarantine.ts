import { unlink } from "node:fs/promises";
import type { HealContext } from "../execution/heal-context.ts";
import { type Found, hasContent, lookAt, sameAcrossBoots } from "../files/file-identity.ts";
import { type HeldDirectory, holdDirectory } from "../files/held-directory.ts";
import { giveBack } from "../quarantine/give-back.ts";
import { type Places, placesOf, removeEntryDirectory } from "../quarantine/place.ts";
import type { FileState, JournalAction, RecoveredHow } from "./entry.ts";
import type { JournalId } from "./id.ts";

/** How an interrupted action was settled. `unsettled`: it could not be looked at, and stays open. */
export interface Settled {
  readonly how: RecoveredHow | "unsettled";
  readonly detail: string;
}

export type QuarantineAction = Extract<JournalAction, { kind: "quarantine-file" }>;

/**
 * Completes or takes back a quarantine that was interrupted anywhere between its announcement and its end, from what
 * lies in the three places the file can be. Whatever is in doubt stays where it is.
 */
export async function settleQuarantine(
  context: HealContext,
  id: JournalId,
  action: QuarantineAction,
): Promise<Settled> {
  const places = placesOf(context.stateDir, id, action.path);
  const parent = holdDirectory(context.hostRoot, places.parent);
  if (!parent.ok) return { how: "unsettled", detail: parent.refusal.message };
  try {
    const settled = await settleIn(parent.value, places, action);
    await parent.value?.sync();
    await removeEntryDirectory(places.directory);
    return settled;
  } finally {
    parent.value?.close();
  }
}

async function settleIn(
  parent: HeldDirectory | undefined,
  places: Places,
  { path, before }: QuarantineAction,
): Promise<Settled> {
  const original = await lookIn(parent, places.name);
  const aside = await lookIn(parent, places.asideName);
  const kept = lookAt(places.file);

  if (isSame(original, before)) {
    // A rename leaves nothing behind, so what is in quarantine can only be a copy, whole or half.
    if (kept.what === "file") await unlink(places.file);
    return { how: "rolled-back", detail: `${path} had not been moved yet.` };
  }
  if (isSame(kept, before) || (await hasContent(places.file, before))) {
    if (parent !== undefined && isSame(aside, before)) await unlink(parent.entry(places.asideName));
    return { how: "completed", detail: `${path} is in quarantine.` };
  }
  if (parent !== undefined && aside.what === "file" && original.what === "nothing") {
    await giveBack(parent.entry(places.asideName), parent.entry(places.name));
    return { how: "rolled-back", detail: `${path} was put back.` };
  }
  if (kept.what !== "nothing") {
    const detail = `${places.file} is not the file that was to be moved from ${path}; compare the two by hand.`;
    return { how: original.what === "nothing" ? "lost" : "interrupted", detail };
  }
  if (original.what === "nothing") {
    const detail = `${path} is neither at its place nor in quarantine; the runtime may have removed it itself.`;
    return { how: "lost", detail };
  }
  return { how: "rolled-back", detail: `${path} had not been moved yet, and was replaced since.` };
}

async function lookIn(parent: HeldDirectory | undefined, name: string): Promise<Found> {
  return parent === undefined ? { what: "nothing" } : lookAt(parent.entry(name));
}

function isSame(found: Found, before: FileState): boolean {
  return found.what === "file" && sameAcrossBoots(found.identity, before);
}
