import { type EarlierFailures, earlierFailures } from "../heal/journal/earlier-failures.ts";
import type { NodeReport } from "../report/node-report.ts";
import { type NodeSettings, stateDirOf } from "./settings/read.ts";

type Place = Pick<NodeSettings, "hostRoot" | "stateDir">;

export async function failuresOf(settings: Place): Promise<ReadonlyMap<string, EarlierFailures>> {
  return await earlierFailures(stateDirOf(settings), process.getuid?.() ?? 0);
}

/** The report with how often healing each finding has failed. */
export async function withEarlierFailures(report: NodeReport, settings: Place): Promise<NodeReport> {
  return withFailedHeals(report, await failuresOf(settings));
}

export function withFailedHeals(report: NodeReport, failures: ReadonlyMap<string, EarlierFailures>): NodeReport {
  if (failures.size === 0) return report;
  return { ...report, findings: report.findings.map((one) => ({ ...one, failedHeals: failures.get(one.id) })) };
}
