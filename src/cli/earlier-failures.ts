import { earlierFailures } from "../heal/journal/earlier-failures.ts";
import type { NodeReport } from "../report/node-report.ts";
import { type NodeSettings, stateDirOf } from "./settings/read.ts";

/** The report with how often healing each finding has failed. */
export async function withEarlierFailures(
  report: NodeReport,
  settings: Pick<NodeSettings, "hostRoot" | "stateDir">,
): Promise<NodeReport> {
  const failures = await earlierFailures(stateDirOf(settings), process.getuid?.() ?? 0);
  if (failures.size === 0) return report;
  return { ...report, findings: report.findings.map((one) => ({ ...one, failedHeals: failures.get(one.id) })) };
}
