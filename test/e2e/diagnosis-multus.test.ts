import { describe, expect } from "vitest";
import { consumedMultusCache, emptyMultusCache, multusDeadlock, runMultusPod } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef } from "../../lab/pods.ts";
import { apiKnows, startStubApi } from "../../lab/stub-api.ts";
import { ensureMultus } from "../../lab/tools.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { COMPANY, company, expectUntouched, kubeletKnows, named, scan, WITH_KUBELET } from "./scanned-node.ts";

const multus = NO_REAL_NODE === undefined ? await ensureMultus() : { available: false as const, reason: NO_REAL_NODE };
const skipped = multus.available ? "" : `: skipped, ${multus.reason}`;

describe.skipIf(!multus.available)(`scan of a node with multus${skipped}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("names the cache that a power cut emptied", async (runtime) => {
    const node = await startWithMultus(runtime);
    const emptied = await runMultusPod(node, { name: "emptied", containers: [{ name: "main" }] });
    const dead = await runMultusPod(node, { name: "dead" });

    await node.powerCut();
    await emptyMultusCache(node, emptied);
    await node.powerOn();
    await startStubApi(node);
    const beside = await company(node);

    const report = await scan(node);
    expect(named(report)).toEqual(
      [`multus-cache-corrupt/${emptied.sandboxId}`, `dead-after-crash/${dead.sandboxId}`].toSorted(),
    );
    expectUntouched(report, beside);
  });

  eachRuntime("names the cache that is gone while the pod is still known", async (runtime) => {
    const node = await startWithMultus(runtime);
    const beside = await company(node);

    const consumed = await consumedMultusCache(node, { name: "consumed" });
    const deadlock = await multusDeadlock(node, { name: "deadlock" });
    const ghosts = deadlock === undefined ? [consumed] : [consumed, deadlock];
    kubeletKnows(node, ...ghosts, ...beside.ready, ...beside.kept);

    const expected = ghosts.map(({ sandboxId }) => `multus-cache-consumed-rebuilt-config/${sandboxId}`).toSorted();
    for (const flags of [["--no-kube"], WITH_KUBELET]) {
      const report = await scan(node, flags);
      expect(named(report)).toEqual(expected);
      for (const { evidence } of report.findings) expect(evidence.map(({ source }) => source)).toContain("logs");
      expectUntouched(report, beside);
    }
    expect(deadlock === undefined).toBe(runtime === "2.3");
  });
});

async function startWithMultus(runtime: LabNode["runtime"]): Promise<LabNode> {
  const node = await start({ runtime });
  await useMultus(node);
  for (const name of COMPANY) await apiKnows(node, podRef({ name, uid: name }));
  return node;
}
