import { describe, expect } from "vitest";
import { unseenWaits } from "../../lab/chaos/waiting-check.ts";
import { liftOrder } from "../../lab/cni-gate.ts";
import { hangingDel, hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { logCreateTimeout, logStopTimeout } from "../../lab/kubelet-log.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import type { NodeReport } from "../../src/report/node-report.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, play, start } from "../lab/real-node.ts";
import { expectAlive, unghostIn } from "./healed-node.ts";
import { company, kubeletKnows, runKubelet } from "./scanned-node.ts";
import { reportOf, UNGHOST } from "./unghost.ts";

const SECOND_MS = 1000;

/** With the default grace periods, and kubelet's directories as the source of pods. */
async function scanAsIs(node: LabNode): Promise<{ readonly code: number | null; readonly report: NodeReport }> {
  const result = await unghostIn(node, ["scan", "--timeout", "30s", "-o", "json"]);
  return { code: result.code, report: reportOf(result) };
}

describe.skipIf(NO_REAL_NODE !== undefined)("what is not yet a finding", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime(
    "a hung creation is pending, degraded once kubelet reports it, then found and healed",
    async (runtime) => {
      const node = await start({ runtime });
      const beside = await company(node);
      kubeletKnows(node, ...beside.ready, ...beside.kept);
      await runKubelet(node);
      const hung = await hungAdd(node, { name: "stuck", uid: "stuck" });
      kubeletKnows(node, hung);

      const quiet = await scanAsIs(node);
      expect([quiet.code, quiet.report.verdict, quiet.report.podCreation?.able]).toEqual([0, "healthy", "yes"]);
      expect(quiet.report.pending).toMatchObject([
        {
          reason: "creation-in-flight",
          pod: { name: "stuck" },
          sandboxId: hung.sandboxId,
          waitsFor: { kind: "plugin", pid: hung.pid },
        },
      ]);

      logCreateTimeout(node, hung.ref);
      expect(await unseenWaits(node, UNGHOST, [hung.ref])).toEqual([]);
      const reported = await scanAsIs(node);
      expect([reported.code, reported.report.verdict, reported.report.findings]).toEqual([1, "degraded", []]);
      expect(reported.report.podCreation).toMatchObject({
        able: "no",
        lastFailure: { code: "deadline-exceeded" },
        blockedPods: [{ namespace: "default", name: "stuck" }],
      });
      const table = await unghostIn(node, ["scan", "--timeout", "30s"]);
      expect(table.stdout).toMatch(/^NO (?:NEW )?PODS START {2}this node cannot create pods; waiting: default\/stuck/);
      const line = await unghostIn(node, ["scan", "--timeout", "30s", "--one-line"]);
      expect([line.code, line.stdout]).toEqual([1, "degraded: 1 creation-retrying; no pods start\n"]);

      // Kubelet's timeout of half a minute ago: no caller waits for this call any more.
      logCreateTimeout(node, hung.ref, new Date(Date.now() - 40 * SECOND_MS));
      await until("the hung creation is a finding", HANG_GUARD_MS, async () => {
        const { report } = await scanAsIs(node);
        return report.findings.some(({ class: id }) => id === "sandbox-name-held-by-inflight-run") ? true : undefined;
      });
      const healing = await unghostIn(node, ["heal", "--yes", "--timeout", "30s", "-o", "json"]);
      const healed = reportOf(healing);
      expect(healed.actions?.map(({ outcome }) => outcome)).toEqual(["healed"]);
      expect([healing.code, healed.verdict, healed.remaining]).toEqual([0, "healthy", []]);

      await node.cri.runPodSandbox(sandboxConfig(hung.ref, hung.ref), CALL);
      const after = await scanAsIs(node);
      expect([after.code, after.report.verdict, after.report.pending]).toEqual([0, "healthy", []]);
      await expectAlive(node, beside);
    },
  );

  eachRuntime("a finished pod that kubelet cannot stop is blocked, and not kept as finished", async (runtime) => {
    const node = await start({ runtime });
    const pod = await finishedPod(node, { name: "leaving", uid: "leaving" });
    kubeletKnows(node, pod);
    await runKubelet(node);
    const kept = await scanAsIs(node);
    expect([kept.report.verdict, kept.report.kept.map(({ sandboxId }) => sandboxId)]).toEqual([
      "healthy",
      [pod.sandboxId],
    ]);

    logStopTimeout(node, pod.sandboxId);
    const { code, report } = await scanAsIs(node);
    expect([code, report.verdict]).toEqual([1, "degraded"]);
    expect(report.pending).toMatchObject([
      { reason: "removal-failing", pod: { name: "leaving" }, reported: [{ by: "kubelet", code: "deadline-exceeded" }] },
    ]);
    expect(report.kept.map(({ reason }) => reason).join()).not.toMatch(/finished/);
  });

  eachRuntime("a hung removal is pending with the plugin it waits for", async (runtime) => {
    const node = await start({ runtime });
    const { ready } = await company(node);
    const [pod] = ready;
    if (pod === undefined) throw new Error("there is a pod that runs");
    await hangingDel(node, pod);
    play(async () => {
      await node.cri.stopPodSandbox(pod.sandboxId, CALL).catch(() => undefined);
    });
    const plugin = await until("the DEL hangs", HANG_GUARD_MS, () => pluginOf(node, "DEL", pod.ref.name));
    logStopTimeout(node, pod.sandboxId);

    const { report } = await scanAsIs(node);
    expect(report.verdict).toBe("degraded");
    expect(report.pending).toMatchObject([
      { reason: "removal-failing", pod: { name: pod.ref.name }, waitsFor: { kind: "plugin", cniCommand: "DEL" } },
    ]);
    await liftOrder(node, "DEL", pod.ref.name);
    await node.kill(plugin.pid);
  });
});
