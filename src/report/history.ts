import { type History, type HistoryRecord, isUndoable } from "../heal/history.ts";
import { stringify } from "../heal/journal-entry.ts";
import type { JournalProblem } from "../heal/journal-reader.ts";
import { count, printable } from "./text.ts";

export interface HistoryDocument {
  readonly apiVersion: "unghost.dev/v1";
  readonly kind: "History";
  readonly entries: readonly unknown[];
  readonly problems: readonly JournalProblem[];
}

/** Plain data, big numbers as decimal strings, ready for JSON and YAML. */
export function historyDocument({ records, problems }: History): HistoryDocument {
  const entries = records.map((record): unknown => JSON.parse(stringify({ ...record, undoable: isUndoable(record) })));
  return { apiVersion: "unghost.dev/v1", kind: "History", entries, problems };
}

/** For people: one line an entry, oldest first, so that the newest stands next to the prompt. */
export function renderHistory({ records, problems }: History): string {
  const lines = records.length === 0 ? ["unghost has not changed anything on this node."] : renderRows(records);
  const undoable = records.filter(isUndoable).length;
  if (undoable > 0) lines.push("", `${count(undoable, "file")} in quarantine; unghost undo ID puts one back.`);
  if (problems.length > 0) lines.push("", `${count(problems.length, "line")} of the journal could not be read:`);
  for (const { file, line, reason } of problems) {
    lines.push(`  ${printable(file)}${line === undefined ? "" : `, line ${line}`}: ${printable(reason)}`);
  }
  return `${lines.join("\n")}\n`;
}

const HEADINGS = ["ID", "WHEN", "STATE", "ACTION", "CLASS", "ON"] as const;

function renderRows(records: readonly HistoryRecord[]): string[] {
  const rows = [HEADINGS, ...records.map(cellsOf)];
  const widths = HEADINGS.map((_heading, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

function cellsOf(record: HistoryRecord): readonly string[] {
  const state = record.state === "done" ? (record.outcome ?? "done") : record.state;
  return [record.id, record.at, state, record.action.kind, record.class, targetOf(record)].map(printable);
}

function targetOf({ action, subject }: HistoryRecord): string {
  switch (action.kind) {
    case "quarantine-file":
    case "write-marker":
    case "replay-del":
    case "remove-netns":
      return action.path;
    case "delete-record":
      return `record ${action.record}`;
    case "stop-sandbox":
    case "remove-sandbox":
    case "save-logs":
      return subject.pod === undefined
        ? action.sandboxId.slice(0, 13)
        : `${subject.pod.namespace}/${subject.pod.name} ${action.sandboxId.slice(0, 13)}`;
    case "end-process":
      return `pid ${action.pid}`;
    case "restart-daemon":
      return `container ${action.containerId.slice(0, 13)}`;
    case "release-address":
      return `${action.address} of ${action.network}`;
    case "kick-pod":
      return `${action.namespace}/${action.name}`;
    case "delete-lease":
      return action.lease;
    case "delete-volume-attachment":
      return action.name;
  }
}
