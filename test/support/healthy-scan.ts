import { until } from "../../lab/poll.ts";
import type { NodeReport } from "../../src/report/node-report.ts";

/** Only against hanging; shorter than a test may take, so that a failure names what the last scan reported. */
const WAIT_MS = 300_000;
/** A scan takes the processor from what is waited for. */
const STEP_MS = 500;

/** Waits until a scan is healthy, and as asked; gives its report. */
export async function healthyScan(
  scan: () => Promise<NodeReport>,
  isIt: (report: NodeReport) => boolean = () => true,
): Promise<NodeReport> {
  let last: NodeReport | undefined;
  const probe = async () => {
    last = await scan();
    return last.verdict === "healthy" && isIt(last) ? last : undefined;
  };
  return await until(() => `the scan is healthy, and not ${inOneLine(last)}`, WAIT_MS, probe, STEP_MS);
}

function inOneLine(report: NodeReport | undefined): string {
  if (report === undefined) return "unread";
  const { verdict, kubernetes, findings, pending = [], problems } = report;
  const seen = [
    ...findings.map(({ class: id, summary }) => `${id} (${summary})`),
    ...pending.map(({ pod, reason }) => `pending ${pod?.name ?? ""} (${reason})`),
    ...problems.map(({ source, problem }) => `${source}: ${problem}`),
  ];
  return `${verdict} with pods from ${kubernetes.source}: ${seen.join("; ") || "nothing found"}`;
}
