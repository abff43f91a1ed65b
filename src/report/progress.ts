import type { ActionResult } from "../heal/run-action.ts";
import type { PlannedAction } from "../plan/plan.ts";
import { subjectInWords } from "./subject-words.ts";
import { paint, printable } from "./text.ts";

export interface Progress {
  report(result: ActionResult): void;
  /** For an action that takes so long that the others go on without it. */
  waiting(action: PlannedAction): void;
  end(): void;
}

export interface ProgressOptions {
  readonly total: number;
  readonly colour: boolean;
  /** One line that is drawn over and over on a terminal; plain lines elsewhere. */
  readonly live: boolean;
  readonly columns: number;
  readonly write: (text: string) => void;
}

const BAR_CELLS = 20;
const CLEAR_LINE = "\r\u001B[2K";

/** Shows healing while it happens. */
export function progress({ total: planned, colour, live, columns, write }: ProgressOptions): Progress {
  const ink = paint(colour);
  let total = planned;
  const tally = { healed: 0, skipped: 0, failed: 0, refused: 0 };
  let done = 0;
  const draw = (): void => {
    const filled = Math.round((BAR_CELLS * done) / Math.max(1, total));
    const bar = "█".repeat(filled) + "░".repeat(BAR_CELLS - filled);
    const bad = tally.failed + tally.refused + tally.skipped;
    write(
      `${CLEAR_LINE}${bar} ${done}/${total}  ${tally.healed} healed${bad > 0 ? `, ${bad} not` : ""}`.slice(
        0,
        columns + 8,
      ),
    );
  };
  if (live) draw();
  return {
    report: (result) => {
      done += 1;
      // What healing brings to light is healed in the same run, and was not counted before.
      total = Math.max(total, done);
      tally[result.outcome] += 1;
      const { finding } = result.action;
      const mark = result.outcome === "healed" ? ink.green("healed ") : ink.red(result.outcome.padEnd(7));
      const reason = result.reason === undefined ? "" : `: ${printable(result.reason)}`;
      const line = `${mark} ${finding.class}  ${printable(subjectInWords(finding.subject))}${reason}\n`;
      if (!live) write(line);
      else {
        if (result.outcome !== "healed") write(CLEAR_LINE + line);
        draw();
      }
    },
    waiting: ({ finding }) => {
      const what = `${finding.class}  ${printable(subjectInWords(finding.subject))}`;
      write(
        `${live ? CLEAR_LINE : ""}${ink.yellow("waiting")} ${what}: no answer yet; the others go on, Ctrl-C leaves it\n`,
      );
      if (live) draw();
    },
    end: () => {
      if (live) write(CLEAR_LINE);
    },
  };
}
