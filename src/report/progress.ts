import type { ActionResult } from "../heal/execution/run-action.ts";
import { printable } from "../host/printable.ts";
import type { PlannedAction } from "../plan/plan.ts";
import { doneInWords } from "./done-words.ts";
import { subjectInWords } from "./subject-words.ts";
import { paint, wrap } from "./text.ts";

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

/** One line for each finding as its healing ends, on a terminal and in a pipe alike. */
export function progress({ colour, screenColumns, write }: ProgressOptions): Progress {
  const ink = paint(colour);
  const print = (text: string): void =>
    write(`${screenColumns === undefined ? text : wrap(text, screenColumns, INDENT)}\n`);
  return {
    report: (result) => {
      const { outcome } = result;
      const mark = outcome === "healed" ? ink.green("healed ") : ink.red(outcome.padEnd(7));
      print(`${mark}  ${nameOf(result.action)}: ${printable(becameInWords(result))}`);
    },
    waiting: (action) => {
      print(`${ink.yellow("waiting")}  ${nameOf(action)}: no answer yet; the others go on, Ctrl-C leaves it`);
    },
  };
}

function nameOf({ finding: { subject, class: classId } }: PlannedAction): string {
  const pod =
    "pod" in subject && subject.pod !== undefined ? `${subject.pod.namespace}/${subject.pod.name}` : undefined;
  const path = "path" in subject ? subject.path : undefined;
  return `${printable(pod ?? path ?? subjectInWords(subject))}  ${classId}`;
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
