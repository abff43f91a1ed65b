import { isFailing } from "../classes/pending.ts";
import type { NodeReport } from "./node-report.ts";
import { pendingLine } from "./pending.ts";
import { renderProblems } from "./problems.ts";
import { count, paint, printable, type TextOptions, wrap } from "./text.ts";

const MOST_FAILING = 5;

/** What healing came to, in a few lines. */
export function renderSummary(report: NodeReport, options: TextOptions): string {
  const { colour, columns } = options;
  const ink = paint(colour);
  const actions = report.actions ?? [];
  const healed = actions.filter(({ outcome }) => outcome === "healed").length;
  const lines: string[] = [];
  const { remaining = [] } = report;
  if (remaining.length === 0 && report.verdict === "unknown") {
    lines.push(`${ink.yellow("UNKNOWN")}  ${count(healed, "ghost")} gone, cannot tell what is left on ${report.node}`);
  } else if (remaining.length === 0 && report.verdict === "degraded") {
    const failing = (report.pending ?? []).filter(isFailing);
    lines.push(
      `${ink.yellow("DEGRADED")}  ${count(healed, "ghost")} gone, ${count(failing.length, "failure")} still reported on ${report.node}`,
      ...failing.slice(0, MOST_FAILING).map((one) => wrap(`  ${pendingLine(one, report.observedAt)}`, columns, "    ")),
    );
  } else if (remaining.length === 0) {
    lines.push(`${ink.green("HEALED")}  ${count(healed, "ghost")} gone, nothing left on ${report.node}`);
  } else {
    lines.push(
      `${ink.red("NOT ALL HEALED")}  ${healed} gone, ${count(remaining.length, "finding")} left on ${report.node}`,
    );
    for (const finding of remaining) {
      const why = actions.find((action) => action.finding === finding)?.reason;
      lines.push(wrap(`  ${printable(finding)}${why === undefined ? "" : `: ${printable(why)}`}`, columns, "    "));
    }
  }
  for (const { expect } of actions)
    if (expect !== undefined) lines.push(wrap(`  ${printable(expect)}`, columns, "    "));
  if (report.problems.length > 0) lines.push(renderProblems(report.problems, options));
  lines.push(ink.dim("  unghost history tells what was done; unghost undo puts a quarantined file back"));
  return `${lines.join("\n")}\n`;
}
