import { isFullId } from "../node/types/ids.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";

/** The finding that a run is healing, shown instead of what a scan found about the same sandbox. */
export type TreatedAs = (sandboxId: string, found: ReportedFinding) => ReportedFinding | undefined;

/**
 * A scan during a heal sees intermediate states: with its corrupt cache quarantined, a sandbox is only dead, and once
 * it is removed its address counts as leaked for a moment. All findings of a sandbox that is being healed are replaced
 * by the finding that is being healed, counted once. Nothing is left out: a sandbox with findings before has one after.
 */
export function asBeingHealed(report: NodeReport, treatedAs: TreatedAs): NodeReport {
  const findings = new Map<string, ReportedFinding>();
  for (const finding of report.findings) {
    const sandboxId = sandboxOf(finding);
    const treated = sandboxId === undefined ? undefined : treatedAs(sandboxId, finding);
    const shown = treated === undefined || treated.id === finding.id ? finding : treated;
    if (!findings.has(shown.id) || shown === finding) findings.set(shown.id, shown);
  }
  return { ...report, findings: [...findings.values()] };
}

/** The sandbox of a finding, including one that is gone. containerd's leases have the sandbox's id. */
export function sandboxOf({ subject }: Pick<ReportedFinding, "subject">): string | undefined {
  const { sandboxId, name = "" } = subject;
  return sandboxId ?? (isFullId(name) ? name : undefined);
}
