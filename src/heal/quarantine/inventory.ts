import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../host/source.ts";
import type { StateDir } from "../files/state-layout.ts";
import { isJournalId, type JournalId, timeOf } from "../journal/entry.ts";
import { type HistoryRecord, isOpen, readHistory } from "../journal/history.ts";

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
    return {
      id,
      since: timeOf(id),
      ...sizeOf(join(stateDir.quarantine, id)),
      record,
      keep,
    };
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

function sizeOf(path: string): Pick<QuarantineEntry, "files" | "bytes"> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return { files: 0, bytes: 0 };
  if (!stats.isDirectory()) return { files: 1, bytes: stats.size };
  return readdirSync(path)
    .map((name) => sizeOf(join(path, name)))
    .reduce((sum, one) => ({ files: sum.files + one.files, bytes: sum.bytes + one.bytes }), { files: 0, bytes: 0 });
}
