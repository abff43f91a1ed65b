import { isFailing } from "../evidence/pending.ts";
import type { NodeReport } from "../report/node-report.ts";

export interface VerdictWords {
  /** The reason of the verdict: a sentence without its full stop. */
  readonly problem: string;
  /** What to do about it. */
  readonly next: string;
}

const MAX_PROBLEMS = 3;

/** The description of a verdict, for the log and for /readyz. */
export function verdictWords({ verdict, findings, problems, pending = [] }: NodeReport): VerdictWords {
  switch (verdict) {
    case "unknown":
      return {
        problem: `the last scan could not determine whether this node has ghosts: ${problemsInWords(problems)}`,
        next: problems.find(({ next }) => next !== undefined)?.next ?? "Run unghost doctor on this node.",
      };
    case "ghosts":
      return { problem: `the last scan found ${findingsInWords(findings)}`, next: "Run unghost scan on this node." };
    case "degraded":
      return {
        problem: `the last scan found no ghosts, but ${pending.filter(isFailing).length} failures are still reported`,
        next: "Run unghost scan on this node.",
      };
    case "healthy":
      return { problem: "none: the last scan found no ghosts", next: "Nothing." };
  }
}

function problemsInWords(problems: NodeReport["problems"]): string {
  const [first, ...rest] = [...new Set(problems.map(({ source, problem }) => `${source}: ${problem}`))];
  if (first === undefined) return "how a container ended could not be read";
  const shown = [first, ...rest.slice(0, MAX_PROBLEMS - 1)].join("; ");
  const left = rest.length - (MAX_PROBLEMS - 1);
  return left > 0 ? `${shown}; and ${left} more` : shown;
}

function findingsInWords(findings: NodeReport["findings"]): string {
  const byClass = [...Map.groupBy(findings, (finding) => finding.class)];
  return byClass.map(([id, { length }]) => `${length} × ${id}`).join(", ") || "ghosts that are being healed";
}
