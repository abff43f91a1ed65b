import type { Evidence } from "../evidence/finding.ts";
import { printable } from "../host/text.ts";
import { type Paint, wrap } from "./text.ts";

export function evidenceLines(evidence: readonly Evidence[], ink: Paint, columns: number): readonly string[] {
  return evidence.map(({ source, fact }) => ink.dim(wrap(`    ${source}: ${printable(fact)}`, columns, "      ")));
}
