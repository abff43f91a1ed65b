import { printable } from "../host/text.ts";
import type { NodeReport } from "./node-report.ts";
import { fullStop, paint, sentence, type TextOptions, wrap } from "./text.ts";

/** How many are listed; the rest is counted. */
const NAMED = 10;

/** What could not be read, so that findings may be missing. */
export function renderProblems(problems: NodeReport["problems"], { colour, columns, verbose }: TextOptions): string {
  const shown = verbose ? problems : problems.slice(0, NAMED);
  const lines = [paint(colour).bold("Could not read")];
  for (const { source, problem, next } of shown) {
    const advice = next === undefined ? "" : ` ${printable(sentence(next))}`;
    lines.push(wrap(`  ${source}: ${fullStop(printable(problem))}${advice}`, columns, "    "));
  }
  if (problems.length > shown.length) lines.push(`  … and ${problems.length - shown.length} more`);
  return lines.join("\n");
}
