import { expect, test } from "vitest";
import type { Io } from "../../src/cli/io.ts";
import { watchScan } from "../../src/cli/show-report.ts";
import type { NodeReport } from "../../src/report/node-report.ts";

const FINDING = { id: "dead-after-crash/a", severity: "warning", treatment: { automatic: true, steps: [] } };

/** The output for these reports, one second apart. */
async function watched(reports: readonly NodeReport[], stdoutIsTerminal: boolean): Promise<string> {
  let stdout = "";
  let scans = 0;
  const io = { stdoutIsTerminal, stdout: (text: string) => void (stdout += text) } as unknown as Io;
  const scan = async () => ({ ...(reports[scans] as NodeReport), observedAt: `2024-01-31T10:15:0${scans++}.000Z` });
  const show = async ({ findings, observedAt }: NodeReport, on: Io) => {
    on.stdout(`${findings.length} findings, ${observedAt.slice(17, 19)}s old\n`);
    return 1 as const;
  };
  await watchScan({ scan, show }, { intervalMs: 1, stamped: true, passes: reports.length }, io);
  return stdout;
}

const none = {
  verdict: "healthy",
  findings: [],
  kept: [],
  problems: [],
  sandboxes: { total: 0, ready: 0, notReady: 0 },
  runtime: { name: "containerd", version: "2.3.4", endpoint: "", reachable: true },
  kubernetes: { source: "none" },
} as unknown as NodeReport;
const one = { ...none, verdict: "ghosts", findings: [FINDING] } as unknown as NodeReport;

test("appends a report when it has changed, and not because of ages", async () => {
  expect(await watched([one, one, none, none, one], false)).toBe(
    [
      "2024-01-31T10:15:00.000Z\n1 findings, 00s old\n",
      "2024-01-31T10:15:02.000Z\n0 findings, 02s old\n",
      "2024-01-31T10:15:04.000Z\n1 findings, 04s old\n",
    ].join(""),
  );
});

test("redraws a terminal with every scan", async () => {
  expect((await watched([one, one, one], true)).split("\u001B[H\u001B[2J\u001B[3J")).toHaveLength(4);
});
