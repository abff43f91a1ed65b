import type { BeginEntry, DoneOutcome, JournalEntry, JournalId } from "./entry.ts";
import { type JournalItem, type JournalProblem, readJournal } from "./reader.ts";

/**
 * - `open`: announced, without an end: in flight, or interrupted and to be closed by the next run.
 * - `done`: ended, with `outcome`. A moved file is in quarantine and can be put back.
 * - `undoing`: being put back, or interrupted while it was.
 * - `undone`: the file is at its original path again.
 * - `pruned`: the quarantined file was deleted permanently.
 * - `rolled-back`: interrupted, and found not to have happened.
 * - `interrupted`: a scan decides whether it took effect.
 * - `lost`: interrupted, and the file is in neither place. Manual check needed.
 */
export type RecordState = "open" | "done" | "undoing" | "undone" | "pruned" | "rolled-back" | "interrupted" | "lost";

/** Everything in the journal about one action. */
export interface HistoryRecord extends Omit<BeginEntry, "event"> {
  readonly state: RecordState;
  readonly endedAt?: string;
  readonly outcome?: DoneOutcome;
  readonly detail?: string;
}

export interface History {
  /** In the order in which they were started. */
  readonly records: readonly HistoryRecord[];
  readonly problems: readonly JournalProblem[];
}

export async function readHistory(journalPath: string): Promise<History> {
  return foldHistory(readJournal(journalPath));
}

export async function foldHistory(items: AsyncIterable<JournalItem> | Iterable<JournalItem>): Promise<History> {
  const records = new Map<JournalId, HistoryRecord>();
  const problems: JournalProblem[] = [];
  for await (const item of items) {
    if (item.type === "problem") problems.push(item.problem);
    else apply(records, item.entry);
  }
  return { records: [...records.values()], problems };
}

function apply(records: Map<JournalId, HistoryRecord>, entry: JournalEntry): void {
  if (entry.event === "resumed") return;
  const known = records.get(entry.id);
  if (entry.event === "begin") {
    // An interrupted rotation leaves duplicate lines, in order; the following lines set the state again.
    if (known === undefined) records.set(entry.id, { ...withoutEvent(entry), state: "open" });
    return;
  }
  // The beginning may have been rotated away before its end.
  if (known !== undefined) records.set(entry.id, { ...known, ...ending(entry) });
}

function ending(entry: Exclude<JournalEntry, { event: "begin" | "resumed" }>): Partial<HistoryRecord> {
  switch (entry.event) {
    case "done":
      return {
        state: "done",
        endedAt: entry.at,
        outcome: entry.outcome,
        // An end without a detail keeps the detail of an earlier end.
        ...(entry.detail === undefined ? {} : { detail: entry.detail }),
      };
    case "undoing":
      return { state: "undoing" };
    case "undone":
      return { state: "undone", endedAt: entry.at };
    case "pruned":
      return { state: "pruned" };
    case "recovered":
      return {
        endedAt: entry.at,
        detail: entry.detail,
        ...(entry.how === "completed" ? { state: "done", outcome: "healed" } : { state: entry.how }),
      };
  }
}

function withoutEvent({ event: _event, ...rest }: BeginEntry): Omit<BeginEntry, "event"> {
  return rest;
}

/** To be closed by the next run that may write. */
export function isOpen(record: HistoryRecord): boolean {
  return record.state === "open" || record.state === "undoing";
}

/** Whether `undo` can put it back: only files in quarantine. */
export function isUndoable(record: HistoryRecord): boolean {
  return record.action.kind === "quarantine-file" && record.state === "done" && record.outcome === "healed";
}
