import { basename } from "node:path";
import type { ActionResult } from "../heal/execution/run-action.ts";
import { printable } from "../host/printable.ts";
import type { PlannedAction } from "../plan/plan.ts";
import { doneInWords } from "./done-words.ts";
import { shortDone } from "./short-action.ts";
import { subjectInWords } from "./subject-words.ts";
import { paint, visibleLength, wrap } from "./text.ts";

export interface Progress {
  report(result: ActionResult): void;
  /** For an action that takes so long that the others go on without it. */
  waiting(action: PlannedAction): void;
}

export interface ProgressOptions {
  readonly colour: boolean;
  /** Missing in a pipe, where a line is never broken. */
  readonly screenColumns?: number;
  readonly write: (text: string) => void;
}

const INDENT = " ".repeat(9);

/**
 * One line for each finding as its healing ends, on a terminal and in a pipe alike. On a screen too narrow for it the class,
 * which the plan has, and the directory of saved logs, which the summary has, are left out; a failure is never shortened.
 */
export function progress({ colour, screenColumns, write }: ProgressOptions): Progress {
  const ink = paint(colour);
  const width = screenColumns ?? Number.POSITIVE_INFINITY;
  const print = (text: string, ...shorter: readonly string[]): void => {
    const fitting = [text, ...shorter].find((one) => visibleLength(one) <= width);
    write(`${fitting ?? wrap(text, width, INDENT)}\n`);
  };
  return {
    report: (result) => {
      const { outcome } = result;
      const mark = outcome === "healed" ? ink.green("healed ") : ink.red(outcome.padEnd(7));
      const shorter = shorterWords(result).map((words) => `${mark}  ${subjectOf(result.action)}: ${printable(words)}`);
      print(`${mark}  ${nameOf(result.action)}: ${printable(becameInWords(result))}`, ...shorter);
    },
    waiting: (action) => {
      print(`${ink.yellow("waiting")}  ${nameOf(action)}: no answer yet; the others go on, Ctrl-C leaves it`);
    },
  };
}

function nameOf(action: PlannedAction): string {
  return `${subjectOf(action)}  ${action.finding.class}`;
}

function subjectOf({ finding: { subject } }: PlannedAction): string {
  const pod =
    "pod" in subject && subject.pod !== undefined ? `${subject.pod.namespace}/${subject.pod.name}` : undefined;
  const path = "path" in subject ? subject.path : undefined;
  return printable(pod ?? path ?? subjectInWords(subject));
}

/** `stopped and removed the sandbox (0.4s); logs saved to /var/lib/unghost/quarantine/…` */
function becameInWords({ action, outcome, reason, undone, logsSavedTo, seconds }: ActionResult): string {
  const done = outcome === "healed" ? doneInWords(action, undone) : (reason ?? outcome);
  const parts = [
    `${done} (${seconds.toFixed(1)}s)`,
    ...(logsSavedTo === undefined ? [] : [`logs saved to ${logsSavedTo}`]),
    ...(outcome === "healed" && reason !== undefined ? [reason] : []),
  ];
  return parts.join("; ");
}

/** The same in fewer words, each shorter than the one before. */
function shorterWords({ action, outcome, reason, undone, logsSavedTo, seconds }: ActionResult): readonly string[] {
  if (outcome !== "healed" || reason !== undefined) return [];
  const logs = logsSavedTo === undefined ? "" : `; logs ${basename(logsSavedTo)}`;
  return [doneInWords(action, undone), shortDone(action, undone)].map(
    (done) => `${done} (${seconds.toFixed(1)}s)${logs}`,
  );
}
