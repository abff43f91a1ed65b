import { statSync } from "node:fs";
import { stateDirLayout } from "../heal/files/state-dir.ts";
import type { UnderWay } from "../heal/journal/in-flight.ts";
import { type LiveRun, ownIdentity } from "../heal/locks/run-lock.ts";
import { asBeingHealed } from "../report/being-healed.ts";
import type { NodeReport, ReportedFinding } from "../report/node-report.ts";
import type { NodeSettings } from "./node-settings.ts";
import { stateDirOf } from "./state.ts";

/** The run that changes this node at this moment, if there is one. Most scans meet none, and load nothing for it. */
export async function runBeside(settings: NodeSettings): Promise<LiveRun | undefined> {
  const stateDir = stateDirOf(settings);
  if (!isNamed(stateDirLayout(stateDir).lock)) return undefined;
  const { findLiveRun } = await import("../heal/journal/in-flight.ts");
  return await findLiveRun(stateDir, process.getuid?.() ?? 0, ownIdentity());
}

/** The report with what that run is treating under the name that it treats it by. */
export async function withHealingBeside(report: NodeReport, run: LiveRun): Promise<NodeReport> {
  const { sandboxesUnderWay } = await import("../heal/journal/in-flight.ts");
  let underWay: ReadonlyMap<string, UnderWay>;
  try {
    underWay = await sandboxesUnderWay(run);
  } catch {
    // What was found stands as it is where the journal cannot be read; whoever writes it says why.
    return report;
  }
  return asBeingHealed(report, (sandboxId, found) => {
    const treated = underWay.get(sandboxId);
    return treated === undefined ? undefined : beingHealed(found, treated);
  });
}

function beingHealed(found: ReportedFinding, { finding, class: classId, pid, since }: UnderWay): ReportedFinding {
  return {
    ...found,
    id: finding,
    class: classId,
    summary: `unghost (process ${pid}) is healing it right now`,
    evidence: [
      { source: "unghost journal", fact: `process ${pid} began its last step for this sandbox at ${since}` },
      { source: "scan", fact: `half-treated, it looks like ${found.class}` },
      ...found.evidence,
    ],
    treatment: {
      automatic: true,
      reversible: false,
      steps: [`leave it to process ${pid}, and scan again when that has ended`],
    },
  };
}

/** A run that has ended left its lock file empty. */
function isNamed(lock: string): boolean {
  try {
    return statSync(lock).size > 0;
  } catch {
    return false;
  }
}
