import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";
import type { NodeReport } from "../../src/report/node-report.ts";
import { tempDir } from "../support/temp-dir.ts";
import { GUARD_MS, UNGHOST } from "./unghost.ts";

export interface Scanned {
  readonly report: NodeReport;
  readonly peakKb: number;
}

/** Scans, and samples the peak memory. */
export async function scanPeak(root: string, flags: readonly string[]): Promise<Scanned> {
  const { stdout, peakKb } = await peakOf(["scan", "-o", "json", "--host-root", root, ...flags]);
  return { report: JSON.parse(stdout) as NodeReport, peakKb };
}

export async function peakOf(args: readonly string[]) {
  const child = spawn(UNGHOST, args, {
    env: { PATH: "/usr/bin:/bin" },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: GUARD_MS,
  });
  let peakKb = 0;
  const watch = setInterval(() => {
    try {
      const [, kb] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8")) ?? [];
      peakKb = Math.max(peakKb, Number(kb ?? 0));
    } catch {
      // It has ended.
    }
  }, 5);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  clearInterval(watch);
  return { stdout, stderr, peakKb };
}

/** A kubeconfig for an API server without TLS; removed after the test. */
export function kubeconfigFor(server: string): string {
  const dir = tempDir();
  onTestFinished(() => dir.remove());
  const path = dir.join("config");
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server } }],
      users: [{ name: "u", user: {} }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
    }),
  );
  return path;
}
