import { printable } from "../host/printable.ts";
import { evidenceLines } from "./evidence.ts";
import { inTableOrder } from "./findings-table.ts";
import type { ReportedFinding } from "./node-report.ts";
import { subjectInWords } from "./subject-words.ts";
import { type Paint, sentence, wrap } from "./text.ts";

export interface DetailOptions {
  readonly columns: number;
  readonly ink: Paint;
  /** What a class is called by people. */
  readonly titleOf: (classId: string) => string;
}

/** Everything about each finding: what it blocks, why, the evidence, and what is done about it. By class. */
export function findingDetails(findings: readonly ReportedFinding[], options: DetailOptions): readonly string[] {
  const byClass = Map.groupBy(inTableOrder(findings), (finding) => finding.class);
  return [...byClass].map(([classId, group]) => classDetails(classId, group, options));
}

function classDetails(classId: string, findings: readonly ReportedFinding[], options: DetailOptions): string {
  const { columns, ink, titleOf } = options;
  const lines = [wrap(`${ink.bold(classId)}  ${titleOf(classId)} (${findings.length})`, columns, "  ")];
  for (const finding of findings) {
    lines.push(wrap(`  ${printable(subjectInWords(finding.subject))}`, columns, "    "));
    for (const blocked of finding.blocks) lines.push(wrap(`    blocks ${printable(blocked)}`, columns, "      "));
    lines.push(wrap(`    Why: ${printable(finding.summary)}`, columns, "      "));
    lines.push(...evidenceLines(finding.evidence, ink, columns));
  }
  const [first] = findings;
  if (first === undefined) return lines.join("\n");
  const how = first.treatment.automatic ? "unghost heal runs:" : "Manual steps:";
  const steps = first.treatment.steps.map((step, index) => `${index + 1}. ${printable(sentence(step))}`);
  return [...lines, `  ${how}`, ...steps.map((step) => wrap(`    ${step}`, columns, "       "))].join("\n");
}
