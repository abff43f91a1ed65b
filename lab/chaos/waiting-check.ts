import { type PodRef, sandboxName } from "../../src/node/types/ids.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import type { LabNode } from "../node.ts";

const SCAN_MS = 120_000;

/**
 * The verdict is never healthy while a pod waits for its sandbox longer than kubelet's timeout. `waiting` are the pods
 * with a hung creation and a reported timeout.
 */
export async function unseenWaits(
  node: LabNode,
  unghost: string,
  waiting: readonly PodRef[],
): Promise<readonly string[]> {
  if (waiting.length === 0) return [];
  const command = [unghost, "scan", "--no-kube", "--timeout", "30s", "-o", "json"];
  const { stdout, stderr } = await node.exec(command, { timeoutMs: SCAN_MS });
  if (stdout === "") return [`the scan ended without a report: ${stderr}`];
  const { verdict, pending = [], findings } = JSON.parse(stdout) as NodeReport;
  const named = new Set(
    [...pending.map(({ pod }) => pod), ...findings.map(({ subject }) => subject.pod)].map((pod) => pod?.name ?? ""),
  );
  return waiting
    .filter(({ name }) => verdict === "healthy" || (verdict === "degraded" && !named.has(name)))
    .map((ref) => `${sandboxName(ref)} waits for its sandbox, and the verdict is ${verdict} without it`);
}
