import { basename, dirname } from "node:path";
import type { FileState } from "../../evidence/journal-action.ts";
import { describeError } from "../../host/source.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HealContext, Intent } from "../journal/journal.ts";
import { type Outcome, ok, type Refusal, refuse } from "../state/outcome.ts";
import {
  canonicalPath,
  type FileIdentity,
  type HeldDirectory,
  hashOf,
  holdDirectory,
  identify,
  kindInWords,
  openForReading,
  sameIdentity,
} from "./file-identity.ts";
import { moveAway, placesOf } from "./move-away.ts";
import { type QuarantineAction, settleQuarantine } from "./recover.ts";

export interface QuarantineRequest extends Omit<Intent, "action"> {
  /** As the node names it. */
  readonly path: string;
  /** The file that was proven to be the obstacle. Any other file at that path is not touched. */
  readonly expected: FileIdentity;
}

/**
 * - `refused`: not touched on purpose. - `failed`: tried; the file is at its path unless the message states otherwise.
 */
export type QuarantineOutcome =
  | { readonly outcome: "healed"; readonly id: JournalId }
  | { readonly outcome: "refused" | "failed"; readonly id?: JournalId; readonly refusal: Refusal };

/** No CNI cache is nearly as large; a larger file is something else and stays. */
export const MAX_QUARANTINE_BYTES = 16n * 1024n * 1024n;

/** Moves one file so that `undo` can put it back: announced, moved, confirmed. */
export async function quarantineFile(context: HealContext, request: QuarantineRequest): Promise<QuarantineOutcome> {
  const path = canonicalPath(context.hostRoot, request.path);
  try {
    const parent = holdDirectory(context.hostRoot, dirname(path));
    if (!parent.ok) return { outcome: "refused", refusal: parent.refusal };
    if (parent.value === undefined) return { outcome: "refused", refusal: gone(path).refusal };
    try {
      return await quarantineIn(parent.value, context, { ...request, path });
    } finally {
      parent.value.close();
    }
  } catch (thrown) {
    return { outcome: "failed", refusal: unmoved(path, thrown) };
  }
}

async function quarantineIn(
  parent: HeldDirectory,
  context: HealContext,
  request: QuarantineRequest,
): Promise<QuarantineOutcome> {
  const { path, expected, ...why } = request;
  const before = await stateBefore(parent.entry(basename(path)), path, expected);
  if (!before.ok) return { outcome: "refused", refusal: before.refusal };

  const action = { kind: "quarantine-file", path, before: before.value } as const;
  const entry = await context.journal.begin({ ...why, action });
  if (!entry.ok) return { outcome: "refused", refusal: entry.refusal };

  return moveAndConfirm(parent, context, entry.value, action);
}

async function moveAndConfirm(
  parent: HeldDirectory,
  context: HealContext,
  id: JournalId,
  action: QuarantineAction,
): Promise<QuarantineOutcome> {
  const places = placesOf(context.stateDir, id, action.path);
  const { journal } = context;
  try {
    const moved = await moveAway(parent, places, action.before);
    if (moved !== "moved") {
      const refusal = moved === "changed" ? changed(action.path).refusal : caught(action.path, places.directory);
      const outcome = moved === "changed" ? "refused" : "failed";
      await journal.done(id, outcome, refusal.message);
      return { outcome, id, refusal };
    }
  } catch (thrown) {
    const settled = await settleQuarantine(context, id, action);
    if (settled.how !== "unsettled") await journal.recovered(id, settled.how, settled.detail);
    if (settled.how !== "completed") {
      return { outcome: "failed", id, refusal: unmoved(action.path, thrown, settled.detail) };
    }
  }
  // If this line is not written, the entry stays open and the next run completes it.
  await journal.done(id, "healed");
  return { outcome: "healed", id };
}

async function stateBefore(entry: string, path: string, expected: FileIdentity): Promise<Outcome<FileState>> {
  const found = identify(entry);
  if (found.what === "nothing") return gone(path);
  if (found.what === "odd")
    return refuse(`${path} is ${kindInWords(found.kind)}, not a regular file.`, "Inspect it manually.");
  if (!sameIdentity(found.identity, expected)) return changed(path);
  if (found.identity.size > MAX_QUARANTINE_BYTES) {
    return refuse(
      `${path} has ${found.identity.size} bytes; unghost moves files of up to ${MAX_QUARANTINE_BYTES}.`,
      "A cache file is never that large. Inspect it manually.",
    );
  }
  const handle = await openForReading(entry);
  try {
    const sha256 = await hashOf(handle, expected.size);
    const { stats } = found;
    if (sha256 === undefined) return changed(path);
    return ok({
      ...found.identity,
      atimeNs: stats.atimeNs,
      mode: Number(stats.mode & 0o7777n),
      uid: Number(stats.uid),
      gid: Number(stats.gid),
      sha256,
    });
  } finally {
    await handle.close();
  }
}

function gone(path: string): ReturnType<typeof refuse> {
  return refuse(`${path} is no longer there.`, "Somebody removed it already; scan again.");
}

function changed(path: string): ReturnType<typeof refuse> {
  return refuse(`${path} was changed since the scan, so nothing proves any more that it is stale.`, "Scan again.");
}

function caught(path: string, directory: string): Refusal {
  return {
    message: `${path} was replaced twice while it was moved; the one in between lies in ${directory} or beside it.`,
    next: "Something writes there right now. Compare the two by hand.",
  };
}

function unmoved(path: string, thrown: unknown, since = "The next run recovers it."): Refusal {
  return {
    message: `${path} could not be moved to quarantine: ${describeError(thrown)}. ${since}`,
    next: "See unghost history.",
  };
}
