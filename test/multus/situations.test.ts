import { describe, expect, test } from "vitest";
import { DELEGATE_SOCKET, restartDelegateDaemon, stopDelegateDaemon } from "../../lab/delegate-daemon.ts";
import { runMultusPod } from "../../lab/faults/multus.ts";
import {
  hangDelegateDaemon,
  hungCreations,
  killRuntimeMidAdd,
  rewriteNetworkConf,
} from "../../lab/faults/thick-multus.ts";
import { logCreateTimeout } from "../../lab/kubelet-log.ts";
import { useMultusWithDaemon } from "../../lab/multus.ts";
import { limitMultusCpu, useThickMultus } from "../../lab/multus-thick.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import type { RuntimeVersion } from "../../lab/runtimes.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { expectAlive, heal, healAll, listedIds, unghostIn } from "../e2e/healed-node.ts";
import { HAS_MULTUS, WHY_NO_MULTUS } from "../e2e/multus-node.ts";
import { kubeletKnows, runKubelet } from "../e2e/scanned-node.ts";
import { reportOf } from "../e2e/unghost.ts";
import { CALL, HANG_GUARD_MS, start } from "../lab/real-node.ts";

const RUNTIMES: readonly RuntimeVersion[] = ["1.6", "2.1", "2.3"];
const VARIANTS = { thick: useThickMultus, thin: useMultusWithDaemon } as const;
const PODS = 6;

async function scanNow(node: LabNode, ...flags: readonly string[]): Promise<NodeReport> {
  return reportOf(await unghostIn(node, ["scan", "--timeout", "10s", "-o", "json", ...flags]));
}

function found(node: LabNode, classId: string, ...flags: readonly string[]) {
  return until(`the scan finds ${classId}`, HANG_GUARD_MS, async () => {
    const { findings } = await scanNow(node, ...flags);
    return findings.find((finding) => finding.class === classId);
  });
}

/** Pods whose ADD hangs because of their delegate's daemon, and kubelet's reports of it. */
async function stuckPods(node: LabNode, running: LabPod) {
  await runKubelet(node);
  await hangDelegateDaemon(node);
  const hung = await hungCreations(node, PODS, CALL.timeoutMs);
  kubeletKnows(node, running, ...hung.refs.map((ref) => ({ ref })));
  for (const ref of hung.refs) logCreateTimeout(node, ref);
  expect((await scanNow(node)).verdict).not.toBe("healthy");
  return hung;
}

describe.skipIf(!HAS_MULTUS).each(RUNTIMES)(`on containerd %s${WHY_NO_MULTUS}`, (runtime) => {
  describe.each(["thick", "thin"] as const)("with %s multus", (variant) => {
    async function nodeWithPod() {
      const node = await start({ runtime });
      await VARIANTS[variant](node);
      const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
      return { node, running };
    }

    test("reports a delegate's daemon that hangs, or is gone, with every pod that it blocks", async () => {
      const { node, running } = await nodeWithPod();
      const { refs, answered } = await stuckPods(node, running);

      const hangs = await found(node, "cni-daemon-socket-down");
      expect(hangs.subject.path).toBe(DELEGATE_SOCKET);
      expect(hangs.blockedPods?.map(({ name }) => name)).toEqual(refs.map(({ name }) => name));

      await stopDelegateDaemon(node);
      await answered;
      const [again] = refs;
      if (again === undefined) throw new Error("there are hung pods");
      await expect(node.cri.runPodSandbox(sandboxConfig(again, again), CALL)).rejects.toThrow();
      expect((await scanNow(node)).verdict).not.toBe("healthy");

      await restartDelegateDaemon(node);
      // containerd 1.6 keeps what it could not roll back without the daemon's DEL.
      const { report: healed } = await heal(node, ["--min-age", "0s"]);
      expect(healed.remaining).toEqual([]);
      for (const ref of refs) await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
      expect((await scanNow(node)).verdict).toBe("healthy");
      await expectAlive(node, { ready: [running], kept: [] });
    });

    // containerd 1.6.20 holds no lock while a plugin runs, so the same fault is a hung daemon.
    const wedges = runtime !== "1.6";
    test("reports and heals the CNI lock of containerd 2, held by hung ADDs while the configuration is rewritten", async () => {
      const { node, running } = await nodeWithPod();
      const { refs } = await stuckPods(node, running);
      await rewriteNetworkConf(node);

      const wedge = await found(node, wedges ? "cni-lock-wedge" : "cni-daemon-socket-down", "--inflight-grace", "0s");
      if (wedges) expect(wedge.evidence.map(({ fact }) => fact).join()).toContain("configuration directory changed");
      const blocked = wedge.blockedPods?.map(({ name }) => name);
      expect(blocked).toEqual(expect.arrayContaining(refs.map(({ name }) => name)));

      await restartDelegateDaemon(node);
      await until("Status answers", HANG_GUARD_MS, () => node.cri.status(CALL).then(() => true));
      await expectAlive(node, { ready: [running], kept: [] });
    });

    test("heals the sandboxes of a containerd killed during ADD, and the pods can start", async () => {
      const { node, running } = await nodeWithPod();
      const { refs } = await killRuntimeMidAdd(node, PODS);
      kubeletKnows(node, running, ...refs.map((ref) => ({ ref })));

      await healAll(node, ["--min-age", "0s"]);

      expect(await listedIds(node)).toEqual([running.sandboxId]);
      for (const ref of refs) await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
      await expectAlive(node, { ready: [running], kept: [] });
    });
  });

  test("reports a thick daemon that is throttled by its CPU limit, and does not restart it", async () => {
    const node = await start({ runtime });
    await useThickMultus(node);
    const running = await runMultusPod(node, { name: "runs", containers: [{ name: "main" }] });
    await limitMultusCpu(node, 10);
    const { refs, answered } = await hungCreations(node, PODS, HANG_GUARD_MS);

    const starved = await found(node, "multus-daemon-down-or-wedged");
    expect(starved.summary).toContain("CPU limit of 10m");
    expect(starved.blockedPods?.length).toBeGreaterThan(0);
    expect(refs.map(({ name }) => name)).toEqual(
      expect.arrayContaining(starved.blockedPods?.map(({ name }) => name) ?? []),
    );

    await limitMultusCpu(node, 2000);
    await answered;
    expect((await scanNow(node)).findings).toEqual([]);
    await expectAlive(node, { ready: [running], kept: [] });
  });
});
