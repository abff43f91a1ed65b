import { describe, expect } from "vitest";
import { emptyFlannelScratch, useFlannel } from "../../lab/faults/flannel-scratch.ts";
import type { LabNode } from "../../lab/node.ts";
import { finishedPod, type LabPod, runPod } from "../../lab/pods.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { healBeside, untilStopped } from "./as-kubelet.ts";
import { cniFiles, expectAlive, expectGone, heal, healAll, isQuarantined } from "./healed-node.ts";
import { kubeletKnows, runKubelet } from "./scanned-node.ts";

const containers = [{ name: "main" }];
const restarted = [{ name: "main", attempt: 1 }];
const WITH_KUBELET = ["--min-age", "0s"] as const;

describe.skipIf(NO_REAL_NODE !== undefined)("heal beside a running kubelet", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("takes the first rung that heals, and no further one", async (runtime) => {
    const node = await start({ runtime });
    await useFlannel(node);
    const again = await runPod(node, { name: "again", uid: "again", containers });
    const dead = await runPod(node, { name: "dead", containers });
    const finishing = await runPod(node, { name: "finishing", uid: "finishing", containers });
    const lonely = await runPod(node, { name: "lonely", containers });
    const bare = await runPod(node, { name: "bare" });
    const forgotten = await runPod(node, { name: "forgotten", containers });
    const done = await finishedPod(node, { name: "done" });
    await node.powerCut();
    const obstacles = [await emptyFlannelScratch(node, finishing), await emptyFlannelScratch(node, lonely)];
    await node.powerOn();
    const successor = await runPod(node, { name: "again", uid: "again", attempt: 1, containers: restarted });
    kubeletKnows(node, again, dead, finishing, lonely, bare, done);
    await runKubelet(node);

    const [{ report }, finished] = await healBeside(node, WITH_KUBELET, asKubelet(node, finishing));

    expect(report.kubernetes.source).toBe("kubelet");
    const steps = new Map(report.actions?.map(({ finding, action }) => [finding.split("/")[1], action]));
    expect([...steps.keys()].toSorted()).toEqual(
      [dead, finishing, lonely, bare, forgotten].map(({ sandboxId }) => sandboxId as string).toSorted(),
    );
    expect(steps.get(dead.sandboxId)).toBe("stop-sandbox");
    expect(steps.get(lonely.sandboxId)).toBe("quarantine-file, await-kubelet, stop-sandbox");
    for (const { path = "" } of obstacles) expect(isQuarantined(node, path)).toBe(true);

    const kept = [again, dead, finishing, lonely, done];
    await expectAlive(node, { ready: [successor, finished], kept });
    expect(report.kept.map(({ sandboxId }) => sandboxId).toSorted()).toEqual(
      kept.map(({ sandboxId }) => sandboxId).toSorted(),
    );
    expect(cniFiles(node).join("\n")).not.toContain(dead.sandboxId);
    expect((await healAll(node, WITH_KUBELET)).actions).toEqual([]);

    // Without its scratch file flannel releases nothing. While the runtime has the sandbox, nothing else does either.
    const address = () => cniFiles(node).filter((file) => file.includes(lonely.sandboxId));
    expect(address()).toHaveLength(1);
    await node.cri.removePodSandbox(lonely.sandboxId, CALL);
    await healAll(node, WITH_KUBELET);
    expect(address()).toEqual([]);
    await expectGone(node, bare, forgotten);
  });

  eachRuntime("leaves the records to kubelet without an API server, and reports healed", async (runtime) => {
    const node = await start({ runtime });
    const dead = await runPod(node, { name: "dead", containers });
    const done = await finishedPod(node, { name: "done" });
    await node.powerCut();
    await node.powerOn();
    await runKubelet(node);

    const { actions, kept } = await healAll(node);

    expect(actions?.map(({ action }) => action)).toEqual(["stop-sandbox"]);
    expect(kept.map(({ sandboxId }) => sandboxId).toSorted()).toEqual([dead.sandboxId, done.sandboxId].toSorted());
    expect(cniFiles(node).join("\n")).not.toContain(dead.sandboxId);
  });

  eachRuntime("skips sandboxes that a recently started kubelet may be recovering", async (runtime) => {
    const node = await start({ runtime });
    const dead = await runPod(node, { name: "dead", containers });
    await node.powerCut();
    await node.powerOn();
    kubeletKnows(node, dead);
    await runKubelet(node);

    const { code, report } = await heal(node, []);

    expect([code, report.actions]).toEqual([0, []]);
    expect(report.kept.map(({ sandboxId }) => sandboxId)).toEqual([dead.sandboxId]);
  });
});

/** Kubelet's part: stops the dead sandbox until that works, and creates the pod again with the next attempt. */
async function asKubelet(node: LabNode, { ref, sandboxId }: LabPod): Promise<LabPod> {
  await untilStopped(node, sandboxId);
  return await runPod(node, { ...ref, attempt: ref.attempt + 1, containers: restarted });
}
