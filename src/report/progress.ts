import { basename } from "node:path";
import { podOf } from "../evidence/finding.ts";
import type { ActionResult } from "../heal/run-action.ts";
import { printable } from "../host/text.ts";
import type { PlannedAction } from "../plan/plan.ts";
import { type Column, type FittedColumns, fitColumns } from "./output.ts";
import { hasDoneSteps, shortDone } from "./step-words.ts";
import { naturalOrder, paint, subjectInWords, withoutIds, withShortIds, wrap } from "./words.ts";

export interface Progress {
  /** The actions that are about to run: they determine the column widths. */
  begin(actions: readonly PlannedAction[]): void;
  report(result: ActionResult): void;
  /** For an action that takes so long that the others continue without it. Only the first one is printed. */
  waiting(action: PlannedAction): void;
  /** Prints what is still held back to be grouped. */
  end(): void;
}

export interface ProgressOptions {
  readonly colour: boolean;
  /** Missing in a pipe, where lines are neither wrapped nor truncated. */
  readonly screenColumns?: number;
  /** One line for every finding, however many there are. */
  readonly verbose?: boolean;
  readonly write: (text: string) => void;
}

const COLUMNS: readonly Column[] = [
  { heading: "RESULT" },
  { heading: "WHAT", shorten: { keep: "middle", comfortable: 24, least: 11 } },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 30, least: 10 } },
  { heading: "DONE", shorten: { keep: "start", comfortable: 30, least: 20 }, drop: "last" },
  { heading: "TIME", drop: "late" },
  { heading: "LOGS", drop: "late" },
];
const NONE = "-";
const INDENT = "  ";
/** The maximum widths: `waiting`, a time, and the journal id in the directory of saved logs. */
const WIDEST = { result: "waiting", time: "0.0s", logs: "0".repeat(14) };
const COLOURS = { healed: "green", failed: "red", refused: "red", skipped: "yellow", waiting: "yellow" } as const;

/**
 * One line for each finding as its heal ends, in columns, on a terminal and in a pipe alike; the reason is below a
 * failure. More than a screen of them are grouped like those of scan, by what became of them.
 */
export function progress({ colour, screenColumns, verbose = false, write }: ProgressOptions): Progress {
  const ink = paint(colour);
  const width = screenColumns ?? Number.POSITIVE_INFINITY;
  let table = tableFor([], width);
  let hasReportedWait = false;
  const reasons = new Map<string, string>();
  const held = new Map<string, readonly Ended[]>();
  let left = 0;

  function print(what: string, classId: string, row: Row, below: string | undefined): void {
    const cells = [what, classId, row.done, row.time, logsIn(row.logs, table)];
    const style = ink[COLOURS[row.result]];
    write(`${table.row([{ text: row.result, style }, ...cells.map((text) => ({ text: printable(text) }))])}\n`);
    if (below !== undefined) write(`${wrap(`${INDENT}${printable(below)}`, width, INDENT.repeat(2))}\n`);
  }

  /** A reason that many have is printed once. */
  function once(action: PlannedAction, reason: string | undefined): string | undefined {
    if (reason === undefined) return undefined;
    const same = reasons.get(withoutIds(reason));
    if (same !== undefined) return `as ${same}`;
    reasons.set(withoutIds(reason), subjectOf(action));
    return reason;
  }

  function printHeld(): void {
    for (const group of held.values()) {
      const [first, ...others] = group.toSorted((one, other) =>
        naturalOrder(subjectOf(one.action), subjectOf(other.action)),
      );
      if (first === undefined) continue;
      const { action, row, reason } = first;
      const what = subjectOf(action, others.length);
      const seconds = Math.max(...group.map((one) => one.seconds));
      const logs = others.length === 0 ? row.logs : undefined;
      print(what, action.finding.class, { ...row, time: shortTime(seconds), logs }, reason);
    }
    held.clear();
  }

  function hold(ended: Ended): void {
    const { action, row, reason = "" } = ended;
    const key = [row.result, action.finding.class, row.done, withoutIds(reason)].join("\n");
    held.set(key, [...(held.get(key) ?? []), ended]);
    if (left === 0) printHeld();
  }

  return {
    begin: (actions) => {
      printHeld();
      left = actions.length > MAX_ROWS && !verbose ? actions.length : 0;
      table = tableFor(actions, width, left > 0);
      write(`${table.heading}\n`);
    },
    report: ({ action, outcome, reason, undone, logsSavedTo, seconds }) => {
      const done = outcome === "healed" || hasDoneSteps(action, undone) ? shortDone(action, undone) : NONE;
      const row: Row = { result: outcome, done, time: shortTime(seconds), logs: logsSavedTo };
      if (left > 0) {
        left -= 1;
        hold({ action, row, reason, seconds });
      } else print(subjectOf(action), action.finding.class, row, once(action, reason));
    },
    end: printHeld,
    waiting: (action) => {
      // If the runtime or kubelet is slow, all of them wait: a line each would double the output.
      if (hasReportedWait) return;
      hasReportedWait = true;
      const row = { result: "waiting", done: NONE, time: NONE, logs: undefined } as const;
      const next = "no answer yet; the others go on, Ctrl-C leaves it";
      print(subjectOf(action), action.finding.class, row, next);
    },
  };
}

/** More than this fill a screen. */
const MAX_ROWS = 20;

interface Ended {
  readonly action: PlannedAction;
  readonly row: Row;
  readonly reason: string | undefined;
  readonly seconds: number;
}

interface Row {
  readonly result: keyof typeof COLOURS;
  readonly done: string;
  readonly time: string;
  readonly logs: string | undefined;
}

function tableFor(actions: readonly PlannedAction[], width: number, isGrouped = false): FittedColumns {
  const expected = actions.map((action) => [
    WIDEST.result,
    printable(subjectOf(action, isGrouped ? actions.length - 1 : 0)),
    action.finding.class,
    shortDone(action),
    WIDEST.time,
    WIDEST.logs,
  ]);
  const rows = expected.map((texts) => texts.map((text) => ({ text })));
  return fitColumns(COLUMNS, rows, { width, headings: true });
}

/** Its directory, or only its name if that does not fit: the summary has the common directory. */
function logsIn(path: string | undefined, { roomAtEnd = 0 }: FittedColumns): string {
  if (path === undefined) return NONE;
  return path.length <= roomAtEnd ? path : basename(path);
}

/** The name of the first, and how many others share its line. */
function subjectOf({ finding: { subject } }: PlannedAction, others = 0): string {
  const pod = podOf(subject);
  const more = others === 0 ? "" : `, +${others}`;
  if (pod !== undefined) return `${pod.namespace}/${pod.name}${more}`;
  const name = "path" in subject && subject.path !== undefined ? basename(subject.path) : subjectInWords(subject);
  return withShortIds(name) + more;
}

/** At most four characters. */
function shortTime(seconds: number): string {
  return seconds < 9.95 ? `${seconds.toFixed(1)}s` : `${Math.round(seconds)}s`;
}
