import { printable } from "../host/text.ts";
import { evidenceLines } from "./evidence.ts";
import { inTableOrder } from "./findings-table.ts";
import type { ReportedFinding } from "./node-report.ts";
import { subjectInWords } from "./subject-words.ts";
import { fullStop, type Paint, sentence, wrap } from "./text.ts";

export interface DetailOptions {
  readonly columns: number;
  readonly ink: Paint;
  /** The title of a class. */
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
  const byTreatment = Map.groupBy(findings, (finding) => treatmentLines(finding, columns).join("\n"));
  for (const [treatment, alike] of byTreatment) {
    for (const finding of alike) {
      lines.push(wrap(`  ${printable(subjectInWords(finding.subject))}`, columns, "    "));
      for (const blocked of finding.blocks) lines.push(wrap(`    blocks ${printable(blocked)}`, columns, "      "));
      lines.push(wrap(`    Why: ${printable(finding.summary)}`, columns, "      "));
      lines.push(...evidenceLines(finding.evidence, ink, columns));
    }
    lines.push(treatment);
  }
  return lines.join("\n");
}

/** The plan of heal if there is one; else the steps of the class. */
function treatmentLines({ treatment, plan }: ReportedFinding, columns: number): readonly string[] {
  if (plan !== undefined && plan.steps.length > 0) {
    const reason = wrap(`    Reason: ${printable(fullStop(plan.reason))}`, columns, "      ");
    return ["  unghost heal runs:", ...numbered(plan.steps, columns), reason];
  }
  // The reason for skipping a manual class is its manual steps.
  const isLeft = plan !== undefined && plan.code !== "needs-consent";
  const left = isLeft ? [wrap(`  unghost heal leaves it alone: ${printable(plan.reason)}`, columns, "    ")] : [];
  if (treatment.automatic) return isLeft ? left : ["  unghost heal runs:", ...numbered(treatment.steps, columns)];
  return [...left, "  Manual steps:", ...numbered(treatment.steps, columns)];
}

function numbered(steps: readonly string[], columns: number): readonly string[] {
  return steps.map((step, index) => wrap(`    ${index + 1}. ${printable(sentence(step))}`, columns, "       "));
}
