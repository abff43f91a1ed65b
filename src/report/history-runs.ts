import { basename } from "node:path";
import { type HistoryRecord, isUndoable } from "../heal/journal/reader.ts";
import { outcomeOf, podOrTarget, RUN_CHARACTERS } from "./history.ts";
import { type Column, plainTable } from "./output.ts";
import { count, shortAge, withShortIds } from "./words.ts";

const COLUMNS: readonly Column[] = [
  { heading: "RUN" },
  { heading: "WHEN" },
  { heading: "BY", drop: "late" },
  { heading: "RESULT", shorten: { keep: "start", comfortable: 20, least: 12 } },
  { heading: "WHAT", shorten: { keep: "start", comfortable: 24, least: 10 } },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 16, least: 10 }, drop: "early" },
  { heading: "UNDO", drop: "last" },
];

/** One line a run, oldest first, so that the newest is next to the prompt. */
export function runLines(runs: readonly (readonly HistoryRecord[])[], now: Date, width: number | undefined) {
  return plainTable(
    COLUMNS,
    runs.map((records) => cellsOf(records, now)),
    width,
  );
}

export function byRun(records: readonly HistoryRecord[]): readonly (readonly HistoryRecord[])[] {
  return [...Map.groupBy(records, ({ run }) => run).values()];
}

function cellsOf(records: readonly HistoryRecord[], now: Date): readonly string[] {
  const [first] = records;
  if (first === undefined) return [];
  const files = records.filter(isUndoable).length;
  return [
    first.run.slice(-RUN_CHARACTERS),
    `${shortAge(first.at, now.toISOString())} ago`,
    first.by ?? "-",
    resultOf(records),
    named(records.map((record) => shortName(podOrTarget(record)))),
    named(records.map((record) => record.class)),
    files === 0 ? "-" : count(files, "file"),
  ];
}

/** `3 done, 1 failed`: findings, each by the worst of its steps. */
function resultOf(records: readonly HistoryRecord[]): string {
  const findings = [...Map.groupBy(records, ({ finding }) => finding).values()];
  const results = findings.map((steps) => steps.map(outcomeOf).find((outcome) => outcome !== "done") ?? "done");
  const sorted = results.toSorted((one, other) => Number(other === "done") - Number(one === "done"));
  return [...Map.groupBy(sorted, (result) => result)].map(([result, { length }]) => `${length} ${result}`).join(", ");
}

/** `history RUN` has the whole path. */
function shortName(name: string): string {
  return withShortIds(name.startsWith("/") ? basename(name) : name);
}

const NAMED = 3;

function named(all: readonly string[]): string {
  const names = [...new Set(all)];
  return names.slice(0, NAMED).join(", ") + (names.length > NAMED ? `, +${names.length - NAMED}` : "");
}
