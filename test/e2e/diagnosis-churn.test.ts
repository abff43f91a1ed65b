import { describe, expect } from "vitest";
import type { LabNode } from "../../lab/node.ts";
import { runPod } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { company, expectUntouched, named, scan } from "./scanned-node.ts";

const SCANS = 20;
const WORKERS = 3;

describe.skipIf(NO_REAL_NODE !== undefined)("scan of a busy node", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("is healthy while pods are created and deleted", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const done = new AbortController();
    const workers = Promise.all(Array.from({ length: WORKERS }, (_, index) => comeAndGo(node, index, done.signal)));

    const seen: string[] = [];
    const answers = new Set<string>();
    try {
      for (let scans = 0; scans < SCANS; scans++) {
        const report = await scan(node);
        seen.push(...named(report));
        answers.add(`${report.verdict}, can create pods: ${report.podCreation?.able}`);
        expectUntouched(report, beside);
      }
    } finally {
      done.abort();
      await workers;
    }
    expect(seen.join(", ")).toBe("");
    expect([...answers]).toEqual(["healthy, can create pods: yes"]);
  });
});

async function comeAndGo(node: LabNode, worker: number, signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    const containers = round % 2 === 0 ? [] : [{ name: "main" }];
    const pod = await runPod(node, { name: `guest-${worker}-${round}`, containers });
    await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    await node.cri.removePodSandbox(pod.sandboxId, CALL);
  }
}
