import { lstatSync, readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describeError, errorCode } from "../../host/source.ts";
import { isJournalId, type JournalId, timeOf } from "../journal/entry.ts";
import type { HealContext } from "../journal/journal.ts";
import { type HistoryRecord, isOpen, readHistory } from "../journal/reader.ts";
import { syncDirectory } from "../state/durable-files.ts";
import type { StateDir } from "../state/state-layout.ts";

/**
 * Why an entry is never pruned by age.
 * - `unfinished`: its change, its undo or another change of the same run has not ended.
 * - `lost`: according to the journal the file is in neither place; compare manually.
 * - `no-journal-entry`: its origin is unknown.
 */
export type KeepCode = "unfinished" | "lost" | "no-journal-entry";

/** One directory in quarantine. */
export interface QuarantineEntry {
  readonly id: JournalId;
  readonly since: Date;
  readonly files: number;
  readonly bytes: number;
  /** Missing if the journal has no entry for it. */
  readonly record?: HistoryRecord;
  readonly keep?: KeepCode;
}

/** Everything in quarantine, oldest first. Directories that unghost did not create are not listed. */
export async function listQuarantine(stateDir: StateDir): Promise<readonly QuarantineEntry[]> {
  const ids = quarantineIds(stateDir);
  if (ids.length === 0) return [];
  const { records } = await readHistory(stateDir.journal);
  const byId = new Map(records.map((record) => [record.id, record]));
  const unfinishedRuns = new Set(records.filter(isOpen).map(({ run }) => run));
  return ids.map((id) => {
    const record = byId.get(id);
    const keep = keepCode(record, unfinishedRuns);
    return { id, since: timeOf(id), ...sizeOf(join(stateDir.quarantine, id)), record, keep };
  });
}

/** Ids sort by time. */
export function quarantineIds({ quarantine }: StateDir): readonly JournalId[] {
  try {
    return readdirSync(quarantine).filter(isJournalId).toSorted();
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  }
}

function keepCode(record: HistoryRecord | undefined, unfinishedRuns: ReadonlySet<string>): KeepCode | undefined {
  if (record === undefined) return "no-journal-entry";
  if (isOpen(record) || unfinishedRuns.has(record.run)) return "unfinished";
  return record.state === "lost" ? "lost" : undefined;
}

/** Every file of an entry, with its whole path. Links are named and not followed. */
export function filesOf(path: string): readonly { readonly path: string; readonly bytes: number }[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  if (!stats.isDirectory()) return [{ path, bytes: stats.size }];
  return readdirSync(path)
    .toSorted()
    .flatMap((name) => filesOf(join(path, name)));
}

function sizeOf(path: string): Pick<QuarantineEntry, "files" | "bytes"> {
  const files = filesOf(path);
  return { files: files.length, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** By age, or the named ones: naming an entry is the consent to delete files without a journal entry. */
export type PruneTarget = ByAge | { readonly ids: ReadonlySet<string> };

interface ByAge {
  readonly olderThan: Date;
  /** Whether an entry may be younger than its date, because the clock may have been wrong when it was created. */
  readonly mayBeYounger?: (record: HistoryRecord) => boolean;
}

export type KeptEntry = QuarantineEntry & { readonly keep: KeepCode };

export interface PruneChoice {
  readonly prune: readonly QuarantineEntry[];
  /** Selected, but still needed. */
  readonly kept: readonly KeptEntry[];
}

export interface Pruned {
  readonly pruned: readonly QuarantineEntry[];
  readonly kept: readonly KeptEntry[];
  readonly failed: readonly { readonly id: JournalId; readonly reason: string }[];
}

export function choosePrunable(entries: readonly QuarantineEntry[], target: PruneTarget): PruneChoice {
  const isNamed = "ids" in target;
  const meant = entries.filter(
    ({ id, since, record }) =>
      record?.state === "pruned" || (isNamed ? target.ids.has(id) : isOverdue(since, record, target)),
  );
  const isKept = (entry: QuarantineEntry): entry is KeptEntry =>
    entry.keep !== undefined && !(isNamed && entry.keep !== "unfinished");
  return { prune: meant.filter((entry) => !isKept(entry)), kept: meant.filter(isKept) };
}

function isOverdue(since: Date, record: HistoryRecord | undefined, { olderThan, mayBeYounger }: ByAge): boolean {
  return since < olderThan && !(record !== undefined && mayBeYounger?.(record));
}

/**
 * Deletes entries permanently. The journal entry comes first: from then on the entry counts as deleted, and the next
 * prune removes what a crash leaves of it. The caller holds the session, so nothing is being moved meanwhile.
 */
export async function pruneQuarantine(context: HealContext, target: PruneTarget): Promise<Pruned> {
  const { stateDir, journal } = context;
  const { prune, kept } = choosePrunable(await listQuarantine(stateDir), target);
  const outcomes = await Promise.all(
    prune.map(async (entry) => {
      const { id } = entry;
      const written = await journal.pruned(id);
      if (!written.ok) return { entry, reason: written.refusal.message };
      try {
        await rm(join(stateDir.quarantine, id), { recursive: true, force: true });
        return { entry };
      } catch (thrown) {
        return { entry, reason: describeError(thrown) };
      }
    }),
  );
  if (outcomes.length > 0) await syncDirectory(stateDir.quarantine);
  return {
    pruned: outcomes.flatMap(({ entry, reason }) => (reason === undefined ? [entry] : [])),
    kept,
    failed: outcomes.flatMap(({ entry: { id }, reason }) => (reason === undefined ? [] : [{ id, reason }])),
  };
}
