import { describe, expect, test } from "vitest";
import { consumedMultusCache, multusDeadlock, runMultusPod } from "../../lab/faults/multus.ts";
import { removedMultus } from "../../lab/faults/removed-multus.ts";
import { rotatedAuthority, writeKubeconfigAgain } from "../../lab/faults/rotated-authority.ts";
import { useMultus } from "../../lab/multus.ts";
import { runPod } from "../../lab/pods.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { HAS_MULTUS, multusPowerCut, WHY_NO_MULTUS } from "./multus-node.ts";
import { AT_ONCE, company, expectUntouched, kubeletKnows, named, scan, WITH_KUBELET } from "./scanned-node.ts";

describe.skipIf(!HAS_MULTUS)(`scan of a node with multus${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("reports the cache that a power cut emptied", async (runtime) => {
    const node = await start({ runtime });
    const { emptied, dead, ready, kept } = await multusPowerCut(node);

    const report = await scan(node);
    expect(named(report)).toEqual(
      [`multus-cache-corrupt/${emptied.sandboxId}`, `multus-lossy-conflist/${dead.sandboxId}`].toSorted(),
    );
    expectUntouched(report, { ready, kept });
  });

  eachRuntime("reports a missing cache while the pod still exists", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    await useMultus(node);

    const consumed = await consumedMultusCache(node, { name: "consumed" });
    const deadlock = await multusDeadlock(node, { name: "deadlock" });
    // Elsewhere the next stop succeeds, and kubelet needs no help.
    const { stop, failedRollback } = containerdRelease(runtime);
    const ghosts = deadlock === undefined || stop !== "del-error-blocks" ? [consumed] : [consumed, deadlock];
    kubeletKnows(node, ...ghosts, ...beside.ready, ...beside.kept);

    const expected = ghosts.map(({ sandboxId }) => `multus-cache-consumed-rebuilt-config/${sandboxId}`).toSorted();
    for (const flags of [["--no-kube"], WITH_KUBELET]) {
      const report = await scan(node, flags);
      expect(named(report)).toEqual(expected);
      for (const { evidence } of report.findings) expect(evidence.map(({ source }) => source)).toContain("logs");
      expectUntouched(report, beside);
    }
    expect(deadlock === undefined).toBe(failedRollback === "is gone");
  });

  eachRuntime("reports the class from the log once the pod is gone everywhere", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    kubeletKnows(node, ...beside.ready, ...beside.kept);
    await useMultus(node);

    const consumed = await consumedMultusCache(node, { name: "consumed" });

    const report = await scan(node, WITH_KUBELET);
    expect(named(report)).toEqual([`multus-lossy-conflist/${consumed.sandboxId}`]);
    expectUntouched(report, beside);
  });

  test("reports the configuration that an uninstalled multus left in front of the node's own", async () => {
    const node = await start({ runtime: "2.3" });
    const beside = await company(node);
    const { path } = await removedMultus(node);
    expect(named(await scan(node, AT_ONCE))).toEqual([]);

    await expect(runPod(node, { name: "next" })).rejects.toThrow("failed to get context for the kubeconfig");
    const report = await scan(node, AT_ONCE);

    expect(named(report)).toEqual([`stale-cni-conf-first/${path}`]);
    expectUntouched(report, beside);
  });

  test("reports the kubeconfig that trusts a former authority, and nothing once it is written again", async () => {
    const node = await start({ runtime: "2.3" });
    const beside = await company(node);
    const { path } = await rotatedAuthority(node);

    await expect(runMultusPod(node, { name: "next" })).rejects.toThrow("certificate signed by unknown authority");
    const report = await scan(node, AT_ONCE);

    expect(named(report)).toEqual([`cni-kubeconfig-ca-stale/${path}`]);
    expectUntouched(report, beside);
    await writeKubeconfigAgain(node);
    expect(named(await scan(node, AT_ONCE))).toEqual([]);
  });
});
