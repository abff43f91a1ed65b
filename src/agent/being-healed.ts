import type { NodeReport, ReportedFinding } from "../report/node-report.ts";
import { isFullId } from "../snapshot/ids.ts";
import type { Sighting } from "./state.ts";

/**
 * A scan in the middle of a healing sees half-treated sandboxes: with its corrupt cache moved away, one merely looks
 * dead, and once it is removed its address looks leaked for a moment. Whatever it shows of a sandbox that is being
 * healed is the finding that is being healed, counted once.
 */
export function asBeingHealed(report: NodeReport, sightings: readonly Sighting[]): NodeReport {
  const healing = new Map<string, ReportedFinding>();
  for (const { finding, standing } of sightings) {
    const id = standing.kind === "healing" ? sandboxOf(finding) : undefined;
    if (id !== undefined) healing.set(id, finding);
  }
  if (healing.size === 0) return report;
  const findings = new Map<string, ReportedFinding>();
  for (const finding of report.findings) {
    const treated = healing.get(sandboxOf(finding) ?? "");
    const shown = treated === undefined || treated.id === finding.id ? finding : treated;
    if (!findings.has(shown.id) || shown === finding) findings.set(shown.id, shown);
  }
  return { ...report, findings: [...findings.values()] };
}

/** Subjects that are the same thing have the same key, whatever class explains them at the moment. */
export function subjectKey(finding: ReportedFinding): string {
  const { type, sandboxId } = finding.subject;
  return type === "sandbox" && sandboxId !== undefined ? sandboxId : finding.id;
}

/** The sandbox that a finding is about, or of which it is left. containerd's leases are named after theirs. */
function sandboxOf({ subject }: ReportedFinding): string | undefined {
  const { sandboxId, name = "" } = subject;
  return sandboxId ?? (isFullId(name) ? name : undefined);
}
