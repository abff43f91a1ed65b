import { link, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { FileState } from "../../evidence/journal-action.ts";
import { describeError, errorCode } from "../../host/source.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HealContext } from "../journal/journal.ts";
import { type HistoryRecord, isUndoable, readHistory } from "../journal/reader.ts";
import { syncDirectory, unlinkIfThere } from "../state/durable-files.ts";
import type { Refusal } from "../state/outcome.ts";
import type { StateDir } from "../state/state-layout.ts";
import { copyFileSafely, type HeldDirectory, hasContent, holdDirectory, identify } from "./file-identity.ts";
import { giveBack, type Places, placesOf, removeEntryDirectory } from "./move-away.ts";
import { type QuarantineAction, settleUndo } from "./recover.ts";

/**
 * - `refused`: nothing was touched. - `failed`: tried; the file is still in quarantine unless the message states
 *   otherwise.
 */
export type UndoOutcome =
  | {
      readonly outcome: "undone" | "already-undone" | "would-undo";
      readonly id: JournalId;
      readonly path: string;
      readonly was: MovedFile;
    }
  | { readonly outcome: "refused" | "failed"; readonly id?: JournalId; readonly refusal: Refusal }
  /** The journal has no such entry. */
  | { readonly outcome: "unknown-id"; readonly refusal: Refusal };

/** What the file was when it was moved, and for which finding. */
export interface MovedFile extends Pick<HistoryRecord, "class" | "finding" | "run"> {
  readonly pod?: string | undefined;
  readonly bytes: string;
  readonly movedAt: string;
}

type UndoPlace = Pick<HealContext, "stateDir" | "hostRoot">;

/** What undo would do, without a change and beside a running heal. */
export async function previewUndo(place: UndoPlace, target: { readonly id: string } | "last"): Promise<UndoOutcome> {
  const found = await findFile(place, target);
  if ("outcome" in found) return found;
  const { id, action, was } = found;
  return await unlessRefused(place, found, () => ({ outcome: "would-undo", id, path: action.path, was }));
}

/** Puts one quarantined file back: the named one, or the one moved last. Open entries must have been closed before. */
export async function undo(context: HealContext, target: { readonly id: string } | "last"): Promise<UndoOutcome> {
  const found = await findFile(context, target);
  return "outcome" in found ? found : await undoQuarantine(context, found);
}

interface Found {
  readonly id: JournalId;
  readonly action: QuarantineAction;
  readonly was: MovedFile;
}

async function findFile(
  { stateDir }: UndoPlace,
  target: { readonly id: string } | "last",
): Promise<Found | UndoOutcome> {
  const { records, problems } = await readHistory(stateDir.journal);
  const record = target === "last" ? records.findLast(isUndoable) : records.find(({ id }) => id === target.id);
  if (record === undefined) {
    const isNewer = target !== "last" && problems.some(({ id }) => id === target.id);
    if (isNewer) return refused(ofNewerVersion(stateDir, target.id));
    return { outcome: target === "last" ? "refused" : "unknown-id", refusal: noSuchEntry(target) };
  }
  const { id, action } = record;
  if (action.kind !== "quarantine-file") return refused(notAFile(record), id);
  const was = movedFile(record, action);
  if (record.state === "undone") return { outcome: "already-undone", id, path: action.path, was };
  return isUndoable(record) ? { id, action, was } : refused(notInQuarantine(record), id);
}

function movedFile(
  { at, run, finding, class: ofClass, subject: { pod } }: HistoryRecord,
  { before }: QuarantineAction,
) {
  const named = pod && `${pod.namespace}/${pod.name}`;
  return { class: ofClass, finding, run, pod: named, bytes: String(before.size), movedAt: at } satisfies MovedFile;
}

async function undoQuarantine(context: HealContext, found: Found): Promise<UndoOutcome> {
  const { id, action } = found;
  try {
    return await unlessRefused(context, found, (at) => putBack(context, at, found));
  } catch (thrown) {
    const message = `${action.path} could not be put back: ${describeError(thrown)}.`;
    return { outcome: "failed", id, refusal: { message, next: "Repair the cause, then run unghost undo again." } };
  }
}

async function unlessRefused(
  place: UndoPlace,
  { id, action }: Found,
  work: (at: HeldPlace) => UndoOutcome | Promise<UndoOutcome>,
): Promise<UndoOutcome> {
  const at = openPlace(place, id, action);
  if ("outcome" in at) return at;
  try {
    const objection = await objectionTo(at.parent, at.places, action);
    return objection === undefined ? await work(at) : refused(objection, id);
  } finally {
    at.parent.close();
  }
}

interface HeldPlace {
  readonly parent: HeldDirectory;
  readonly places: Places;
}

function openPlace(
  { stateDir, hostRoot }: UndoPlace,
  id: JournalId,
  { path }: QuarantineAction,
): HeldPlace | UndoOutcome {
  const places = placesOf(stateDir, id, path);
  const parent = holdDirectory(hostRoot, places.parent);
  if (!parent.ok) return refused(parent.refusal, id);
  return parent.value === undefined ? refused(noParent(places, path), id) : { parent: parent.value, places };
}

async function objectionTo(
  parent: HeldDirectory,
  places: Places,
  { path, before }: QuarantineAction,
): Promise<Refusal | undefined> {
  if (identify(parent.entry(places.name)).what !== "nothing") return newer(path, places.file);
  if (await hasContent(places.file, before)) return undefined;
  return {
    message: `${places.file} is missing or differs from the file that the journal recorded for ${path}.`,
    next: "Compare its sha256 with unghost history -o json, and copy it by hand if you trust it.",
  };
}

async function putBack(
  context: HealContext,
  { parent, places }: HeldPlace,
  { id, action, was }: Found,
): Promise<UndoOutcome> {
  const { journal } = context;
  const { path, before } = action;
  const announced = await journal.undoing(id);
  if (!announced.ok) return refused(announced.refusal, id);
  try {
    if (!(await restoreFile(parent, places, before))) {
      await journal.done(id, "healed", "An undo was refused: something newer is there.");
      return refused(newer(path, places.file), id);
    }
    await journal.undone(id);
    return { outcome: "undone", id, path, was };
  } catch (thrown) {
    const settled = await settleUndo(context, id, action);
    if (settled.how !== "unsettled") await journal.recovered(id, settled.how, settled.detail);
    if (settled.how === "undone") return { outcome: "undone", id, path, was };
    const message = `${path} could not be put back: ${describeError(thrown)}. ${settled.detail}`;
    return { outcome: "failed", id, refusal: { message, next: "Repair the cause, then run unghost undo again." } };
  }
}

function refused(refusal: Refusal, id?: JournalId): UndoOutcome {
  return { outcome: "refused", id, refusal };
}

function noSuchEntry(target: { readonly id: string } | "last"): Refusal {
  if (target === "last") {
    return { message: "The journal names no file that is in quarantine.", next: "See unghost history." };
  }
  return { message: `The journal has no entry ${target.id}.`, next: "See unghost history for the ids there are." };
}

function ofNewerVersion({ quarantine }: StateDir, id: string): Refusal {
  return {
    message: `Entry ${id} was written by a newer version of unghost, which this one cannot read.`,
    next: `Run unghost undo with that version. What the entry moved stays in ${join(quarantine, id)}.`,
  };
}

function notAFile(record: HistoryRecord): Refusal {
  return {
    message: `Entry ${record.id} (${record.action.kind}) cannot be undone: only files that were moved can be put back.`,
    next: "unghost quarantine lists what can be put back.",
  };
}

function notInQuarantine(record: HistoryRecord): Refusal {
  const how = record.outcome === undefined ? record.state : `${record.state}, ${record.outcome}`;
  return {
    message: `Entry ${record.id} left nothing in quarantine to put back (${how}).`,
    next: "See unghost history for entries that did.",
  };
}

function noParent(places: Places, path: string): Refusal {
  return {
    message: `${path} cannot be put back: its directory ${places.parent} is gone.`,
    next: `Make the directory again and repeat, or take the file from ${places.file}.`,
  };
}

function newer(path: string, file: string): Refusal {
  return {
    message: `${path} was not put back: something newer is there.`,
    next: `Move it away first if you want the old one, which stays in ${file}.`,
  };
}

/**
 * Puts a quarantined file back at its original path, which must be free; returns false if it is not. The file leaves
 * quarantine only once it is synced at its path, so that it always exists in at least one of the two places.
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
