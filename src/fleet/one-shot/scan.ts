import * as v from "valibot";
import { parseJson, printable } from "../../host/text.ts";
import type { GhostReportStatus } from "../../kube/ghost-report.ts";
import { type NodeReport, NodeReportSchema } from "../../report/node-report.ts";
import { findingSummary, summaryOf } from "../../report/node-summary.ts";
import type { Failure } from "./failure.ts";
import type { OneShot } from "./job.ts";
import type { Ended } from "./run.ts";

/** The report of `unghost -o json` in a log; kubelet's log has stderr in it, too. */
export function reportInLog({ log, code }: Ended, shot: OneShot): NodeReport | Failure {
  const [text] = /^\{$[^]*?^\}$/m.exec(log) ?? [];
  const parsed = v.safeParse(NodeReportSchema, text === undefined ? undefined : parseJson(text), { abortEarly: true });
  if (parsed.success) return parsed.output;
  const last = printable(log.trim().split("\n").at(-1) ?? "").slice(0, 300);
  return {
    code: "no-report",
    message: `unghost ended with code ${code} and without a report${last === "" ? "" : `: ${last}`}`,
    next: `check that ${shot.image} is an image of unghost of this version`,
  };
}

/** As the node's agent would have it in its GhostReport. */
export function reportStatus(report: NodeReport): GhostReportStatus {
  const { worst, ...summary } = summaryOf(report, report.findings);
  const findings = worst.map((finding) => ({ ...findingSummary(finding), standing: "observed" as const }));
  return { ...summary, agentVersion: "", findings: findings.length === 0 ? undefined : findings };
}
