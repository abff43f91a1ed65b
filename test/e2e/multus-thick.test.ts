import { existsSync } from "node:fs";
import { describe, expect } from "vitest";
import { delegateRequests, restartDelegateDaemon, stopDelegateDaemon } from "../../lab/delegate-daemon.ts";
import { runMultusPod } from "../../lab/faults/multus.ts";
import { killRuntimeMidAdd } from "../../lab/faults/thick-multus.ts";
import { MULTUS_CACHE_DIR } from "../../lab/multus.ts";
import { killMultusDaemon, startMultusDaemon, useThickMultus } from "../../lab/multus-thick.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, start } from "../lab/real-node.ts";
import { cniFiles, expectAlive, heal, healAll, listedIds, unghostIn } from "./healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "./multus-node.ts";
import { kubeletKnows } from "./scanned-node.ts";

const PODS = 6;
const NOW = ["--no-kube", "--min-age", "0s", "--inflight-grace", "0s"];

describe.skipIf(!HAS_MULTUS)(`a node with thick multus${WHY_NO_MULTUS}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heal removes incomplete sandboxes of a containerd killed during ADD", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
    const { refs } = await killRuntimeMidAdd(node, PODS);
    kubeletKnows(node, ...refs.map((ref) => ({ ref })), running);

    const dry = await unghostIn(node, ["heal", "--dry-run", "--min-age", "0s"]);
    const report = await healAll(node, ["--min-age", "0s"]);

    // No step is planned that thick multus does not need.
    expect(dry.stdout).not.toContain("multus' DEL safe");
    expect(report.actions?.filter(({ finding }) => finding.startsWith("multus-"))).toEqual([]);
    expect(await listedIds(node)).toEqual([running.sandboxId]);
    await expectAlive(node, { ready: [running], kept: [] });
  });

  eachRuntime("heal calls the DEL that never reached a delegate before it moves its record", async (runtime) => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const pod = await runMultusPod(node, { name: "pod" });
    const record = `${MULTUS_CACHE_DIR}/results/cbr0-${pod.sandboxId}-eth0`;
    // Without its daemon the shim answers DEL with success, and the delegate gets no DEL.
    await killMultusDaemon(node);
    await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    await node.cri.removePodSandbox(pod.sandboxId, CALL);
    await startMultusDaemon(node);
    // Like kube-ovn, which keeps its addresses elsewhere.
    await node.check(["sh", "-c", "rm /var/lib/cni/networks/cbr0/10.*"]);

    await stopDelegateDaemon(node);
    const { code, report } = await heal(node, NOW);
    expect([code, report.actions?.map(({ outcome }) => outcome)]).toEqual([1, ["failed"]]);
    expect(existsSync(node.path(record))).toBe(true);

    await restartDelegateDaemon(node);
    await healAll(node, NOW);
    expect(delegateRequests(node)).toEqual([`DEL ${pod.sandboxId}`]);
    expect(cniFiles(node).filter((file) => file.includes(pod.sandboxId))).toEqual([]);
  });
});
