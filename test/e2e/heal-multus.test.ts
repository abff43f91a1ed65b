import { describe, expect } from "vitest";
import { consumedMultusCache, multusDeadlock } from "../../lab/faults/multus.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { AT_ONCE, cniFiles, expectAlive, expectGone, heal, healAll } from "./healed-node.ts";
import { HAS_MULTUS, multusPowerCut, WHY_NO_MULTUS } from "./multus-node.ts";
import { company, kubeletKnows, scan, WITH_KUBELET } from "./scanned-node.ts";

describe.skipIf(!HAS_MULTUS)(`heal of a node with multus${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("resolves the deadlock of a delegate that fails every DEL", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    await useMultus(node);
    const deadlock = await multusDeadlock(node, { name: "deadlock" });
    const consumed = await consumedMultusCache(node, { name: "consumed" });
    // Elsewhere the next stop succeeds, and kubelet needs no help.
    const { stop, failedRollback } = containerdRelease(runtime);
    const ghosts = deadlock === undefined || stop !== "del-error-blocks" ? [consumed] : [deadlock, consumed];
    expect(deadlock === undefined).toBe(failedRollback === "is gone");

    await healAll(node);

    expectOnlyCachesOf(node, beside.ready);
    await expectGone(node, ...ghosts);
    await expectAlive(node, beside);
  });

  eachRuntime("releases what delegates held when the cache was lost in a power cut", async (runtime) => {
    const node = await start({ runtime });
    const { emptied, dead, ready, kept } = await multusPowerCut(node);

    const { code, report } = await heal(node);

    expect([code, report.remaining]).toEqual([0, []]);
    expectOnlyCachesOf(node, ready);
    await expectGone(node, emptied, dead);
    await expectAlive(node, { ready, kept });
  });

  eachRuntime("stops, and does not remove, a sandbox whose pod still exists", async (runtime) => {
    const node = await start({ runtime });
    await useMultus(node);
    const consumed = await consumedMultusCache(node, { name: "consumed", containers: [{ name: "main" }] });
    kubeletKnows(node, consumed);

    const report = await healAll(node, ["--min-age", "0s"]);

    expect(report.actions?.map(({ action }) => action)).toEqual(["multus-marker, stop-sandbox"]);
    expect(report.kept.map(({ sandboxId }) => sandboxId)).toEqual([consumed.sandboxId]);
    // Kubelet stops it again before it removes it, and each stop runs DEL.
    await node.cri.stopPodSandbox(consumed.sandboxId, CALL);
    const scanned = await scan(node, WITH_KUBELET);
    expect([scanned.verdict, scanned.kept.map(({ sandboxId }) => sandboxId)]).toEqual([
      "healthy",
      [consumed.sandboxId],
    ]);
    await healAll(node, [...AT_ONCE, "--all-dead"]);
    await expectGone(node, consumed);
  });
});

/** Nothing else is left: no marker, no cache file, no address. */
function expectOnlyCachesOf(node: LabNode, pods: readonly { readonly sandboxId: string }[]): void {
  const owners = cniFiles(node).flatMap((file) => /[0-9a-f]{64}/.exec(file) ?? []);
  expect(new Set(owners)).toEqual(new Set(pods.map(({ sandboxId }) => sandboxId)));
}
