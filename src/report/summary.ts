import { dirname } from "node:path";
import { isFailing } from "../evidence/pending.ts";
import { printable } from "../host/text.ts";
import type { NodeReport } from "./node-report.ts";
import { pendingLine } from "./pending.ts";
import { renderProblems } from "./problems.ts";
import { count, inLines, paint, type TextOptions, wrap } from "./text.ts";
import { selectedWords } from "./verdict-line.ts";

const MAX_FAILING = 5;

/** The result of a heal in a few lines. */
export function renderSummary(report: NodeReport, options: TextOptions): string {
  const { colour, columns } = options;
  const ink = paint(colour);
  const actions = report.actions ?? [];
  const healed = actions.filter(({ outcome }) => outcome === "healed").length;
  const where = printable(report.node) + selectedWords(report.selection);
  const lines: string[] = [];
  const { remaining = [] } = report;
  if (remaining.length === 0 && report.verdict === "unknown") {
    lines.push(`${ink.yellow("UNKNOWN")}  ${healed} healed, could not determine what is left on ${where}`);
  } else if (remaining.length === 0 && report.verdict === "degraded") {
    const failing = (report.pending ?? []).filter(isFailing);
    lines.push(
      `${ink.yellow("DEGRADED")}  ${healed} healed, ${count(failing.length, "failure")} still reported on ${where}`,
      ...failing.slice(0, MAX_FAILING).map((one) => wrap(`  ${pendingLine(one, report.observedAt)}`, columns, "    ")),
    );
  } else if (remaining.length === 0) {
    lines.push(`${ink.green("HEALED")}  ${healed} healed, nothing left on ${where}`);
  } else {
    lines.push(
      `${ink.red("NOT ALL HEALED")}  ${healed} healed, ${count(remaining.length, "finding")} left on ${where}`,
    );
    for (const finding of remaining) {
      const why = actions.find((action) => action.finding === finding)?.reason;
      lines.push(wrap(`  ${printable(finding)}${why === undefined ? "" : `: ${printable(why)}`}`, columns, "    "));
    }
  }
  for (const { expect } of actions)
    if (expect !== undefined) lines.push(wrap(`  ${printable(expect)}`, columns, "    "));
  if (report.problems.length > 0) lines.push(renderProblems(report.problems, options));
  const undoable = actions.flatMap(({ undo = [] }) => undo).length;
  const undo = undoable === 0 ? [] : [`${count(undoable, "file")} can be put back: unghost undo ID`];
  const [logs] = actions.flatMap(({ logsSavedTo = [] }) => logsSavedTo);
  const saved = logs === undefined ? [] : [`Logs: ${printable(dirname(logs))}`];
  lines.push(...inLines(["What was done: unghost history", ...undo, ...saved], columns).map((line) => ink.dim(line)));
  return `${lines.join("\n")}\n`;
}
