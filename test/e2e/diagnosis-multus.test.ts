import { describe, expect } from "vitest";
import { consumedMultusCache, emptyMultusCache, multusDeadlock, runMultusPod } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import { startStubApi } from "../../lab/stub-api.ts";
import { ensureMultus } from "../../lab/tools.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import {
  company,
  expectUntouched,
  keptPods,
  kubeletKnows,
  named,
  readyPods,
  scan,
  WITH_KUBELET,
} from "./scanned-node.ts";

const multus = NO_REAL_NODE === undefined ? await ensureMultus() : { available: false as const, reason: NO_REAL_NODE };
const skipped = multus.available ? "" : `: skipped, ${multus.reason}`;

describe.skipIf(!multus.available)(`scan of a node with multus${skipped}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("names the cache that a power cut emptied", async (runtime) => {
    const node = await start({ runtime });
    const kept = await keptPods(node);
    await useMultus(node);
    const emptied = await runMultusPod(node, { name: "emptied", containers: [{ name: "main" }] });
    const dead = await runMultusPod(node, { name: "dead" });

    await node.powerCut();
    await emptyMultusCache(node, emptied);
    await node.powerOn();
    await startStubApi(node);
    const ready = await readyPods(node, runMultusPod);

    const report = await scan(node);
    expect(named(report)).toEqual(
      [`multus-cache-corrupt/${emptied.sandboxId}`, `dead-after-crash/${dead.sandboxId}`].toSorted(),
    );
    expectUntouched(report, { ready, kept });
  });

  eachRuntime("names the cache that is gone while the pod is still known", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    await useMultus(node);

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

  eachRuntime("names what the log says once nothing knows the pod any more", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    kubeletKnows(node, ...beside.ready, ...beside.kept);
    await useMultus(node);

    const consumed = await consumedMultusCache(node, { name: "consumed" });

    const report = await scan(node, WITH_KUBELET);
    expect(named(report)).toEqual([`multus-lossy-conflist/${consumed.sandboxId}`]);
    expectUntouched(report, beside);
  });
});
