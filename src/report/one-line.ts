import { isFailing } from "../evidence/pending.ts";
import { printable } from "../host/text.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { count, countByKind } from "./words.ts";

/** node-problem-detector truncates a plugin's message after this many bytes. */
const MAX_BYTES = 80;

/**
 * A report in one line that is never truncated: the most important part comes first, and the rest is counted or left
 * out.
 */
export function oneLine(report: NodeReport): string {
  switch (report.verdict) {
    case "healthy": {
      const { name, version } = report.runtime;
      return wholeWords(
        `OK: no ghosts among ${count(report.sandboxes.total, "sandbox", "sandboxes")}, ${name} ${version}`,
      );
    }
    case "degraded":
      return degraded(report);
    case "ghosts":
      return ghosts(report.findings);
    case "unknown": {
      const [first] = report.problems;
      return wholeWords(first === undefined ? "unknown: scan failed" : `unknown: ${first.source}: ${first.problem}`);
    }
  }
}

/** `12 ghosts: 9 dead-after-crash, 3 libcni-result-cache-corrupt; web-0 blocked` */
function ghosts(findings: readonly ReportedFinding[]): string {
  const byClass = [...Map.groupBy(findings, (finding) => finding.class)]
    .map(([id, group]) => ({ id, number: group.length }))
    .toSorted((one, other) => other.number - one.number);
  const head = countByKind(findings);
  const line = firstThatFits(
    shorterAndShorter(byClass.map(({ id, number }) => `${number} ${id}`)).map((classes) => `${head}: ${classes}`),
  );
  return firstThatFits([...blockedInWords(findings).map((blocked) => `${line}; ${blocked}`), line ?? head]) ?? head;
}

/** `degraded: 12 creation-retrying, 6 removal-failing; no pods start` */
function degraded({ pending = [], podCreation }: NodeReport): string {
  const byReason = [...Map.groupBy(pending.filter(isFailing), ({ reason }) => reason)]
    .map(([reason, group]) => ({ reason, number: group.length }))
    .toSorted((one, other) => other.number - one.number);
  const words = shorterAndShorter(byReason.map(({ reason, number }) => `${number} ${reason}`));
  const lines = words.map((reasons) => `degraded: ${reasons}`);
  const withCreation = podCreation?.able === "no" ? lines.map((line) => `${line}; no pods start`) : [];
  return firstThatFits([...withCreation, ...lines]) ?? "degraded";
}

function blockedInWords(findings: readonly ReportedFinding[]): readonly string[] {
  const names = new Set(
    findings.flatMap(({ subject, blocks }) => (blocks.length > 0 && subject.pod ? [printable(subject.pod.name)] : [])),
  );
  if (names.size === 0) return [];
  const named = shorterAndShorter([...names]).map((some) => `${some} blocked`);
  return [...named, `${count(names.size, "pod")} blocked`];
}

/** `a, b, c`; `a, b, 1 more`; `a, 2 more`. */
function shorterAndShorter(items: readonly string[]): readonly string[] {
  return items.map((_, left) => {
    const named = items.slice(0, items.length - left);
    return [...named, ...(left === 0 ? [] : [`${left} more`])].join(", ");
  });
}

function firstThatFits(lines: readonly string[]): string | undefined {
  return lines.find(fits);
}

function fits(line: string): boolean {
  return Buffer.byteLength(line) <= MAX_BYTES;
}

/** As many words as fit, without a trailing separator. */
function wholeWords(text: string): string {
  const words = printable(text)
    .split(/\s+/)
    .filter((word) => word !== "");
  while (!fits(words.join(" "))) words.pop();
  return words.join(" ").replace(/[,;:(]+$/, "");
}
