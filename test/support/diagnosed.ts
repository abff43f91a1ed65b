import { type Diagnosis, diagnose } from "../../src/diagnose/diagnose.ts";
import type { DiagnosisPolicy } from "../../src/evidence/view.ts";
import type { Snapshot } from "../../src/node/types/snapshot.ts";
import { AT_ONCE, type NodeParts, snapshotOf } from "./snapshot-builder.ts";

export function diagnosed(
  parts: NodeParts,
  policy: DiagnosisPolicy = AT_ONCE,
  sources: Partial<Snapshot> = {},
): Diagnosis {
  return diagnose(snapshotOf(parts, sources), policy);
}

/** Class and subject of each finding, sorted. */
export function named({ findings }: Pick<Diagnosis, "findings">): readonly string[] {
  return findings.map(({ id }) => id).toSorted();
}
