import { findLiveRun, sandboxesUnderWay, type UnderWay } from "../heal/journal/in-flight.ts";
import { type LiveRun, ownIdentity } from "../heal/state/run-lock.ts";
import { asBeingHealed } from "../report/build.ts";
import type { NodeReport, ReportedFinding } from "../report/node-report.ts";

/** The run that is changing this node, if any. */
export async function findRunBeside(stateDir: string): Promise<LiveRun | undefined> {
  return await findLiveRun(stateDir, process.getuid?.() ?? 0, ownIdentity());
}

/** The report, with subjects of that run under the class by which it heals them. */
export async function withHealingBeside(report: NodeReport, run: LiveRun): Promise<NodeReport> {
  let underWay: ReadonlyMap<string, UnderWay>;
  try {
    underWay = await sandboxesUnderWay(run);
  } catch {
    // If the journal is unreadable the findings stay unchanged; the writer of the journal reports the error.
    return report;
  }
  return asBeingHealed(report, (sandboxId, found) => {
    const treated = underWay.get(sandboxId);
    return treated === undefined ? undefined : beingHealed(found, treated);
  });
}

function beingHealed(reported: ReportedFinding, { finding, class: classId, pid, since }: UnderWay): ReportedFinding {
  const { plan: _overtaken, ...found } = reported;
  return {
    ...found,
    id: finding,
    class: classId,
    summary: `unghost (process ${pid}) is healing it right now`,
    evidence: [
      { source: "unghost journal", fact: `process ${pid} began its last step for this sandbox at ${since}` },
      { source: "scan", fact: `half-healed, it matches ${found.class}` },
      ...found.evidence,
    ],
    treatment: {
      automatic: true,
      reversible: false,
      steps: [`leave it to process ${pid}, and scan again when that has ended`],
    },
  };
}
