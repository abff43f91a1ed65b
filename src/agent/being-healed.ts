import { asBeingHealed, sandboxOf } from "../report/build.ts";
import type { NodeReport, ReportedFinding } from "../report/node-report.ts";
import type { Sighting } from "./state.ts";

/** The report, with subjects that this agent is healing under the class by which it heals them. */
export function withOwnHealing(report: NodeReport, sightings: readonly Sighting[]): NodeReport {
  const healing = new Map<string, ReportedFinding>();
  for (const { finding, standing } of sightings) {
    const id = standing.kind === "healing" ? sandboxOf(finding) : undefined;
    if (id !== undefined) healing.set(id, finding);
  }
  return healing.size === 0 ? report : asBeingHealed(report, (id) => healing.get(id));
}

/** The same subject has the same key, whatever class explains it at the moment. */
export function reportedSubjectKey(finding: ReportedFinding): string {
  const { type, sandboxId } = finding.subject;
  return type === "sandbox" && sandboxId !== undefined ? sandboxId : finding.id;
}
