import { setTimeout as sleep } from "node:timers/promises";
import type { NodeReport } from "../report/node-report.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { Io } from "./io.ts";

const CLEAR_SCREEN = "\u001B[H\u001B[2J\u001B[3J";

interface WatchedScan {
  readonly scan: () => Promise<NodeReport>;
  readonly show: (report: NodeReport, io: Io) => Promise<ExitCode>;
}

interface WatchOptions {
  readonly intervalMs: number;
  /** Print the time above each report; not for machine-readable formats. */
  readonly stamped: boolean;
  /** Ends it after this many scans, for tests. */
  readonly passes?: number;
}

/**
 * Scans repeatedly until it is interrupted. A terminal is redrawn; elsewhere a report is appended if its content
 * changed, ignoring ages.
 */
export async function watchScan(
  { scan, show }: WatchedScan,
  { intervalMs, stamped, passes = Number.POSITIVE_INFINITY }: WatchOptions,
  io: Io,
): Promise<ExitCode> {
  let before: string | undefined;
  for (let pass = 1; ; pass++) {
    const report = await scan();
    const content = contentOf(report);
    const isNew = io.stdoutIsTerminal || content !== before;
    const stamp = stamped ? `${report.observedAt}\n` : "";
    const printed: string[] = [];
    const code = await show(report, { ...io, stdout: (output) => printed.push(output) });
    if (isNew) io.stdout((io.stdoutIsTerminal ? CLEAR_SCREEN : "") + stamp + printed.join(""));
    before = content;
    if (pass >= passes) return code;
    await sleep(intervalMs);
  }
}

/** The content of a report without what changes with time. */
function contentOf({ verdict, findings, pending = [], podCreation, kept, problems, ...report }: NodeReport): string {
  return JSON.stringify({
    verdict,
    findings: findings.map(({ id, severity, treatment, blockedPods }) => [
      id,
      severity,
      treatment.automatic,
      blockedPods,
    ]),
    pending: pending.map(({ reason, sandboxId, pod }) => [reason, sandboxId, pod]),
    creation: podCreation?.blockedPods,
    kept: kept.map(({ sandboxId, code }) => [sandboxId, code]),
    problems: problems.map(({ source, code }) => [source, code]),
    sandboxes: report.sandboxes,
    runtime: report.runtime,
    kubernetes: report.kubernetes.source,
  });
}
