import { type HistoryRecord, isUndoable } from "../heal/journal/reader.ts";
import { printable } from "../host/text.ts";
import { holdsFiles, outcomeOf, podOrTarget, RUN_CHARACTERS } from "./history.ts";

/** The entries of one run: by its id, or by the end of it that the table shows; then of the newest such run. */
export function entriesOfRun(records: readonly HistoryRecord[], run: string): readonly HistoryRecord[] {
  const isNamed = (one: HistoryRecord): boolean =>
    one.run === run || (run.length >= RUN_CHARACTERS && one.run.endsWith(run));
  const newest = records.findLast(isNamed)?.run;
  return records.filter((one) => one.run === newest);
}

/** What one run did, in order: each finding with the facts that proved it, then the steps, and where their files are. */
export function renderRun(records: readonly HistoryRecord[], quarantine: string): string {
  const [first] = records;
  if (first === undefined) return "";
  const by = first.by === undefined ? "" : ` by ${first.by}`;
  const lines = [`Run ${first.run}${by}, ${first.at}, boot ${first.boot}`];
  for (const record of records) {
    if (record.evidence !== undefined) {
      lines.push("", record.finding, ...record.evidence.map(({ source, fact }) => `    because  ${source}: ${fact}`));
    }
    const seconds = ((Date.parse(record.at) - Date.parse(first.at)) / 1000).toFixed(2);
    const detail = record.detail === undefined ? "" : `: ${record.detail}`;
    lines.push(`  +${seconds}s  ${record.action.kind}  ${podOrTarget(record)}  ${outcomeOf(record)}${detail}`);
    if (holdsFiles(record)) lines.push(`    kept in ${quarantine}/${record.id}`);
    if (isUndoable(record)) lines.push(`    put back by: unghost undo ${record.id}`);
  }
  return `${lines.map(printable).join("\n")}\n`;
}
