import { describe, expect, test } from "vitest";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPod } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, healAll } from "./healed-node.ts";
import { AT_ONCE, readyPods, scan } from "./scanned-node.ts";

const LOOP = { name: "loop", uid: "loop" } as const;

describe.skipIf(NO_REAL_NODE !== undefined)("a crash loop caused by a ghost", { timeout: HANG_GUARD_MS }, () => {
  // Newer versions ignore an empty cache: there it causes nothing.
  test("is reported beside its cause, and ends with it (containerd 1.6)", async () => {
    const node = await start({ runtime: "1.6" });
    for (const attempt of [3, 4]) await endPause(node, await runPod(node, { ...LOOP, attempt }));
    const newest = await runPod(node, { ...LOOP, attempt: 5 });
    await emptyResultCache(node, newest);
    await endPause(node, newest);
    const ready = await readyPods(node);

    const report = await scan(node, AT_ONCE);
    const circle = report.findings.find(({ class: id }) => id === "crash-loop-driven-by-ghost");
    const cause = `libcni-result-cache-corrupt/${newest.sandboxId}`;
    expect(report.findings.map(({ id }) => id)).toContain(cause);
    expect(circle).toMatchObject({ id: `crash-loop-driven-by-ghost/${cause}`, blocks: ["pod default/loop"] });
    expect(circle?.summary).toMatch(/^1 pod restarts every \d+m?\d*s? because of libcni-result-cache-corrupt/);
    expect(report.crashLoops).toMatchObject({ pods: 1 });

    await healAll(node);
    await expectAlive(node, { ready, kept: [] });
  });
});

/** The sandbox dies in this boot, and its network is not torn down. */
async function endPause(node: LabNode, { sandboxId }: LabPod): Promise<void> {
  await node.check(["ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", sandboxId]);
  await until("the sandbox is dead", HANG_GUARD_MS, async () => {
    const [listed] = await node.cri.listPodSandbox({ id: sandboxId }, CALL);
    return listed?.state === PodSandboxState.SANDBOX_NOTREADY || undefined;
  });
}
