import type { Evidence } from "../classes/finding.ts";
import { type Paint, printable, wrap } from "./text.ts";

export function evidenceLines(evidence: readonly Evidence[], ink: Paint, columns: number): readonly string[] {
  return evidence.map(({ source, fact }) => ink.dim(wrap(`    ${source}: ${printable(fact)}`, columns, "      ")));
}

/** One of a group stands for all; what is said of it need not be true of the others to the letter. */
export function evidenceOfFirst(
  [first, ...others]: readonly { readonly evidence: readonly Evidence[] }[],
  ink: Paint,
  columns: number,
): readonly string[] {
  const lines = evidenceLines(first?.evidence ?? [], ink, columns);
  return others.length === 0 ? lines : [ink.dim("    Of the first:"), ...lines];
}
