import type { ReportedFinding } from "./node-report.ts";

/** `3 ghosts, 1 leak` */
/** `2 ghosts, 1 leak`. Also for the status page, which carries no more than it needs. */
export function countByKind(findings: readonly Pick<ReportedFinding, "kind">[]): string {
  const of = (kind: ReportedFinding["kind"]) => findings.filter((finding) => (finding.kind ?? "other") === kind).length;
  const words = [
    [of("ghost"), "ghost"],
    [of("leak"), "leak"],
    [of("other"), of("ghost") + of("leak") === 0 ? "finding" : "other finding"],
  ] as const;
  return (
    words
      .flatMap(([number, word]) => (number === 0 ? [] : [`${number} ${word}${number === 1 ? "" : "s"}`]))
      .join(", ") || "no ghosts"
  );
}
