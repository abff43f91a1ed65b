import { doneTo } from "../evidence/step.ts";
import { stringify } from "../heal/journal/entry.ts";
import { type History, type HistoryRecord, isUndoable, type JournalProblem } from "../heal/journal/reader.ts";
import { printable } from "../host/text.ts";
import { type Column, plainTable } from "./output.ts";
import { count, shortAge } from "./words.ts";

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

export interface HistoryTable {
  /** With their heading. */
  readonly lines: readonly string[];
  /** One line for each run. */
  readonly inRuns: boolean;
  /** Entries in the journal, shown or not. */
  readonly all: number;
}

/** Oldest first, so that the newest is next to the prompt. */
export function renderHistory({ records, problems }: History, { lines: table, inRuns, all }: HistoryTable): string {
  const nothing = all === 0 ? "unghost has not changed anything on this node." : "No entry matches.";
  const lines = records.length === 0 ? [nothing] : [...table];
  if (inRuns && records.length > 0) lines.push("One run: unghost history RUN   Every step: unghost history -v");
  const undoable = records.filter(isUndoable).length;
  if (undoable > 0) lines.push(`${count(undoable, "file")} can be put back; unghost quarantine lists the ids.`);
  lines.push(...problemLines(problems));
  return `${lines.join("\n")}\n`;
}

/** One line per entry. */
export function entryLines(records: readonly HistoryRecord[], now: Date, width: number | undefined): readonly string[] {
  return plainTable(
    COLUMNS,
    records.map((record) => cellsOf(record, now)),
    width,
  );
}

function problemLines(problems: readonly JournalProblem[]): readonly string[] {
  const newer = problems.filter(({ code }) => code === "newer-version");
  const others = problems.filter(({ code }) => code !== "newer-version");
  const lines: string[] = [];
  if (newer.length > 0) {
    const version = "written by a newer version of unghost. They stay as they are; that version lists and undoes them";
    lines.push("", `${count(newer.length, "line")} of the journal ${newer.length === 1 ? "is" : "are"} ${version}.`);
  }
  if (others.length > 0) lines.push("", `${count(others.length, "line")} of the journal could not be read:`);
  for (const { file, line, reason } of others) {
    lines.push(`  ${printable(file)}${line === undefined ? "" : `, line ${line}`}: ${printable(reason)}`);
  }
  return lines;
}

const COLUMNS: readonly Column[] = [
  { heading: "ID" },
  { heading: "WHEN" },
  { heading: "BY", drop: "late" },
  { heading: "RUN", drop: "late" },
  { heading: "OUTCOME" },
  { heading: "ACTION", shorten: { keep: "start", comfortable: 18, least: 12 } },
  { heading: "ON", shorten: { keep: "middle", comfortable: 24, least: 10 } },
  // `history ID` shows it.
  { heading: "CLASS", shorten: { keep: "start", comfortable: 16, least: 10 }, drop: "early" },
  { heading: "UNDO", drop: "last" },
];

/** Runs are distinguished by the end of their id; its start is the time, which is shown beside it. */
export const RUN_CHARACTERS = 4;

function cellsOf(record: HistoryRecord, now: Date): readonly string[] {
  return [
    record.id,
    `${shortAge(record.at, now.toISOString())} ago`,
    record.by ?? "-",
    record.run.slice(-RUN_CHARACTERS),
    outcomeOf(record),
    record.action.kind,
    podOrTarget(record),
    record.class,
    isUndoable(record) ? "yes" : "-",
  ];
}

export function outcomeOf({ state, outcome }: HistoryRecord): string {
  if (state !== "done") return state;
  // For one step of a heal: the scan after it shows whether the finding is gone.
  return outcome === "healed" ? "done" : (outcome ?? "done");
}

/** One complete entry. */
export function renderEntry(record: HistoryRecord, quarantine: string): string {
  const lines: (readonly [string, string | undefined])[] = [
    ["ID", record.id],
    ["Started", record.at],
    ["Ended", record.endedAt],
    ["By", record.by],
    ["Run", record.run],
    ["Boot", record.boot],
    ["Outcome", outcomeOf(record)],
    ["Detail", record.detail],
    ["Action", record.action.kind],
    ["On", targetOf(record)],
    ["Sandbox", "sandboxId" in record.action ? record.action.sandboxId : record.subject.sandboxId],
    ["Finding", record.finding],
    ...(record.evidence ?? []).map(({ source, fact }): [string, string] => ["Because", `${source}: ${fact}`]),
    ["Class", `${record.class} (unghost explain ${record.class})`],
    ["Quarantine", holdsFiles(record) ? `${quarantine}/${record.id}` : undefined],
    ["Undo", isUndoable(record) ? `unghost undo ${record.id}` : "not possible"],
  ];
  const shown = lines.flatMap(([label, text]) =>
    text === undefined ? [] : [`${label}:`.padEnd(13) + printable(text)],
  );
  return `${shown.join("\n")}\n`;
}

/** In a table the pod is the most familiar name; the complete entry has the rest. */
export function podOrTarget(record: HistoryRecord): string {
  const { pod } = record.subject;
  return pod === undefined ? targetOf(record) : `${pod.namespace}/${pod.name}`;
}

/** It has files in quarantine. */
export function holdsFiles(record: HistoryRecord): boolean {
  return (
    isUndoable(record) || (record.action.kind === "save-logs" && record.state === "done" && record.outcome === "healed")
  );
}

export function targetOf({ action, subject: { pod } }: HistoryRecord): string {
  return doneTo(action, pod === undefined ? undefined : `${pod.namespace}/${pod.name}`);
}
