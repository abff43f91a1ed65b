import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, type LabPod, runPod } from "../../lab/pods.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { UNGHOST } from "./unghost.ts";

const SCHEMA = join(import.meta.dirname, "../../docs/schema/node-report.v1.json");
const SCAN_MS = 60_000;
const EXIT_OF_VERDICT = { healthy: 0, degraded: 1, ghosts: 1, unknown: 2 } as const;

const isReport = new Ajv2020({ validateFormats: false }).compile<NodeReport>(JSON.parse(readFileSync(SCHEMA, "utf8")));

const WITHOUT_KUBERNETES = ["--no-kube"] as const;
/** For classes with minimum ages, because the test has just created their subjects. */
const NO_WAITING = ["--min-age", "0s", "--inflight-grace", "0s"] as const;
export const AT_ONCE = [...WITHOUT_KUBERNETES, ...NO_WAITING] as const;
/** Kubelet's own directories are the source of pods. */
export const WITH_KUBELET = NO_WAITING;

/**
 * Runs `unghost scan -o json` in the node; checks the report with the published schema, and the exit code with the
 * verdict.
 */
export async function scan(node: LabNode, flags: readonly string[] = WITHOUT_KUBERNETES): Promise<NodeReport> {
  const command = [UNGHOST, "scan", "--timeout", "30s", "-o", "json", ...flags];
  const { stdout, stderr, code } = await node.exec(command, { timeoutMs: SCAN_MS });
  expect(stderr).toBe("");
  const report: unknown = JSON.parse(stdout);
  if (!isReport(report)) throw new Error(`the report breaks its schema: ${JSON.stringify(isReport.errors)}`);
  expect(report.problems).toEqual([]);
  expect(code).toBe(EXIT_OF_VERDICT[report.verdict]);
  return report;
}

/** Creates kubelet's directories of these pods. */
export function kubeletKnows(node: LabNode, ...pods: readonly Pick<LabPod, "ref">[]): void {
  for (const { ref } of pods) mkdirSync(node.path(`/var/lib/kubelet/pods/${ref.uid}`), { recursive: true });
}

/** A process with kubelet's name, by which a scan finds a kubelet. */
export async function runKubelet(node: LabNode, flags: readonly string[] = []): Promise<void> {
  await node.writeFile("/opt/kubelet", "#!/bin/sh\nwhile :; do sleep 1000; done\n", 0o755);
  await node.check(["sh", "-c", `setsid /opt/kubelet ${flags.join(" ")} </dev/null >/dev/null 2>&1 &`]);
}

/** One line per finding: class and subject, sorted. */
export function named(report: Pick<NodeReport, "findings">): readonly string[] {
  return report.findings.map(({ id }) => id).toSorted();
}

/** Pods that must never be in a finding: running ones, a finished one, and one that runs again. */
export interface Company {
  readonly ready: readonly LabPod[];
  readonly kept: readonly LabPod[];
}

export async function company(node: LabNode): Promise<Company> {
  const kept = await keptPods(node);
  return { kept, ready: await readyPods(node) };
}

const AGAIN = { name: "again", uid: "again" } as const;
const containers = [{ name: "main" }] as const;

/** A finished pod, and the first sandbox of one that readyPods() runs again. */
export async function keptPods(node: LabNode): Promise<readonly LabPod[]> {
  return [await finishedPod(node, AGAIN), await finishedPod(node, { name: "done" })];
}

export async function readyPods(node: LabNode, run = runPod): Promise<readonly LabPod[]> {
  return [
    await run(node, { name: "busy", containers }),
    await run(node, { name: "bare" }),
    await run(node, { ...AGAIN, containers, attempt: 1 }),
  ];
}

export function expectUntouched(report: NodeReport, { ready, kept }: Company): void {
  const touched = new Set(report.findings.map(({ subject }) => subject.sandboxId));
  for (const pod of [...ready, ...kept]) expect(touched).not.toContain(pod.sandboxId);
  const keptIds = report.kept.map(({ sandboxId }) => sandboxId);
  expect(keptIds).toEqual(expect.arrayContaining(kept.map(({ sandboxId }) => sandboxId)));
  for (const pod of ready) expect(keptIds).not.toContain(pod.sandboxId);
}
