import { unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { FileState } from "../../evidence/journal-action.ts";
import type { JournalAction } from "../../evidence/step.ts";
import { describeError } from "../../host/source.ts";
import type { JournalId, RecoveredHow } from "../journal/entry.ts";
import type { HealContext } from "../journal/journal.ts";
import { type HistoryRecord, isOpen } from "../journal/reader.ts";
import { readUnsettled } from "../journal/unsettled.ts";
import { unlinkIfThere } from "../state/durable-files.ts";
import {
  type Found,
  type HeldDirectory,
  hasContent,
  holdDirectory,
  identify,
  sameAcrossBoots,
} from "./file-identity.ts";
import { giveBack, type Places, placesOf, removeEntryDirectory } from "./move-away.ts";

/** An open entry of an earlier run, and how it was recovered. */
export interface Recovery extends Settled {
  readonly id: JournalId;
  readonly kind: JournalAction["kind"];
}

/**
 * Closes the entries that an earlier run left open, because it was killed or the power was cut. The caller holds the
 * run lock, so no open entry can be in flight.
 */
export async function recoverOpenEntries(context: HealContext): Promise<readonly Recovery[]> {
  const records = await readUnsettled(context.stateDir.journal);
  const recoveries: Recovery[] = [];
  for (const record of records.filter(isOpen)) {
    const settled = await settle(context, record);
    if (settled.how !== "unsettled") await context.journal.recovered(record.id, settled.how, settled.detail);
    recoveries.push({ id: record.id, kind: record.action.kind, ...settled });
  }
  return recoveries;
}

async function settle(context: HealContext, record: HistoryRecord): Promise<Settled> {
  const { id, action } = record;
  try {
    switch (action.kind) {
      case "quarantine-file":
        return await (record.state === "undoing" ? settleUndo : settleQuarantine)(context, id, action);
      case "write-marker":
        return await removeMarker(context.hostRoot, action);
      default:
        return { how: "interrupted", detail: "The scan of this run shows whether it took effect." };
    }
  } catch (thrown) {
    return { how: "unsettled", detail: `Could not read it: ${describeError(thrown)}.` };
  }
}

/** How an interrupted action was closed. `unsettled`: it could not be read, and stays open. */
interface Settled {
  readonly how: RecoveredHow | "unsettled";
  readonly detail: string;
}

export type QuarantineAction = Extract<JournalAction, { kind: "quarantine-file" }>;

/**
 * Completes or reverts a quarantine that was interrupted anywhere between its announcement and its end, from the files
 * in the three possible places. In case of doubt a file stays where it is.
 */
export async function settleQuarantine(
  context: HealContext,
  id: JournalId,
  action: QuarantineAction,
): Promise<Settled> {
  const places = placesOf(context.stateDir, id, action.path);
  return await withDirectory(context.hostRoot, places.parent, async (parent) => {
    const settled = await settleIn(parent, places, action);
    await parent?.sync();
    await removeEntryDirectory(places.directory);
    return settled;
  });
}

/** Returns undefined if the directory is gone. An untrusted directory closes nothing. */
async function withDirectory(
  hostRoot: string,
  path: string,
  settleIt: (directory: HeldDirectory | undefined) => Promise<Settled>,
): Promise<Settled> {
  const held = holdDirectory(hostRoot, path);
  if (!held.ok) return { how: "unsettled", detail: held.refusal.message };
  try {
    return await settleIt(held.value);
  } finally {
    held.value?.close();
  }
}

async function settleIn(
  parent: HeldDirectory | undefined,
  places: Places,
  { path, before }: QuarantineAction,
): Promise<Settled> {
  const original = await identifyIn(parent, places.name);
  const aside = await identifyIn(parent, places.asideName);
  const kept = identify(places.file);

  if (isSame(original, before)) {
    // A rename leaves no source, so the file in quarantine can only be a copy, complete or not.
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

async function identifyIn(parent: HeldDirectory | undefined, name: string): Promise<Found> {
  return parent === undefined ? { what: "nothing" } : identify(parent.entry(name));
}

function isSame(found: Found, before: FileState): boolean {
  return found.what === "file" && sameAcrossBoots(found.identity, before);
}

/** Completes or reverts an interrupted undo. A file leaves quarantine only when it is back at its path. */
export async function settleUndo(context: HealContext, id: JournalId, action: QuarantineAction): Promise<Settled> {
  const places = placesOf(context.stateDir, id, action.path);
  return await withDirectory(context.hostRoot, places.parent, async (parent) => {
    const isKept = identify(places.file).what !== "nothing";
    const settled = await settleUndoIn(parent, places, action, isKept);
    if (settled.how !== "completed") await removeEntryDirectory(places.directory);
    return settled;
  });
}

async function settleUndoIn(
  parent: HeldDirectory | undefined,
  places: Places,
  { path, before }: QuarantineAction,
  isKept: boolean,
): Promise<Settled> {
  if (parent !== undefined) await unlinkIfThere(parent.entry(places.asideName));
  if (parent !== undefined && (await hasContent(parent.entry(places.name), before))) {
    await parent.sync();
    await unlinkIfThere(places.file);
    return { how: "undone", detail: `${path} had been put back.` };
  }
  if (isKept) return { how: "completed", detail: `${path} had not been put back and is still in quarantine.` };
  const isReplaced = parent !== undefined && identify(parent.entry(places.name)).what !== "nothing";
  return isReplaced
    ? { how: "interrupted", detail: `The file is no longer in quarantine, and ${path} has other content.` }
    : { how: "lost", detail: `The file is neither in quarantine nor at ${path}.` };
}

/** multus never removes the marker, and a later pod must not read it: it is removed, unless it was rewritten. */
export async function removeMarker(
  hostRoot: string,
  marker: Pick<Extract<JournalAction, { kind: "write-marker" }>, "path" | "sha256">,
): Promise<Settled> {
  return await withDirectory(hostRoot, dirname(marker.path), async (parent) => {
    const absent = { how: "rolled-back", detail: `The marker ${marker.path} is not there.` } as const;
    if (parent === undefined) return absent;
    const entry = parent.entry(basename(marker.path));
    const found = identify(entry);
    if (found.what === "nothing") return absent;
    const ours =
      found.what === "file" && (await hasContent(entry, { sha256: marker.sha256, size: found.identity.size }));
    if (!ours) return { how: "interrupted", detail: `${marker.path} is no longer our marker and was left as it is.` };
    await unlink(entry);
    await parent.sync();
    return { how: "rolled-back", detail: `The marker ${marker.path} was removed.` };
  });
}
