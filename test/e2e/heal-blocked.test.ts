import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { liftOrder } from "../../lab/cni-gate.ts";
import { clockStep } from "../../lab/faults/clock-step.ts";
import { hangingDel, hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { interruptedRun } from "../../lab/faults/interrupted-run.ts";
import { acceptDel, failedRollback } from "../../lab/faults/refusing-plugin.ts";
import { podRef, runPod, sandboxConfig } from "../../lab/pods.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectAlive, expectGone, heal, healAll, listedIds } from "./healed-node.ts";
import { company } from "./scanned-node.ts";

const NANOSECONDS = 1_000_000_000n;

describe.skipIf(NO_REAL_NODE !== undefined)("heal of blocked names", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("ends the hung ADD that holds a name, after the grace period", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const hung = await hungAdd(node, { name: "web" });
    const again = sandboxConfig(hung.ref, hung.ref);
    await expect(node.cri.runPodSandbox(again, CALL)).rejects.toThrow(`is reserved for "${hung.sandboxId}"`);

    const early = await heal(node, [...AT_ONCE, "--inflight-grace", "10m"]);
    expect([early.code, early.report.verdict, early.report.actions]).toEqual([1, "degraded", []]);
    expect(early.report.kept).toContainEqual(expect.objectContaining({ sandboxId: hung.sandboxId }));
    expect(pluginOf(node, "ADD", "web")?.pid).toBe(hung.pid);

    await node.check(["sleep", "2"]);
    await healAll(node, [...AT_ONCE, "--inflight-grace", "2s"]);

    expect(pluginOf(node, "ADD", "web")).toBeUndefined();
    await expectGone(node, hung);
    await expectAlive(node, beside);
  });

  eachRuntime("ends a hung DEL, and then removes its sandbox", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const pod = await runPod(node, { name: "web" });
    await hangingDel(node, pod);
    await expect(node.cri.stopPodSandbox(pod.sandboxId, { timeoutMs: 1000 })).rejects.toThrow(RuntimeError);
    await liftOrder(node, "DEL", "web");

    expect((await heal(node)).report.actions).toEqual([]);
    await healAll(node, [...AT_ONCE, "--inflight-grace", "0s"]);

    expect(pluginOf(node, "DEL", "web")).toBeUndefined();
    await expectGone(node, pod);
    await expectAlive(node, beside);
  });

  test("removes a failed creation as soon as its plugin works again (containerd 1.6)", async () => {
    const node = await start({ runtime: "1.6" });
    const beside = await company(node);
    const ref = podRef({ name: "web" });
    const { sandboxId } = (await failedRollback(node, ref)) ?? {};
    if (sandboxId === undefined) throw new Error("containerd 1.6 was expected to keep the sandbox");

    const refused = await heal(node);
    expect(refused.code).toBe(1);
    expect(refused.report.actions).toMatchObject([
      { outcome: "failed", reason: expect.stringContaining("server_socket is required") },
    ]);
    expect(refused.report.remaining).toHaveLength(1);

    await acceptDel(node, { ref, sandboxId, reservedName: "", containerIds: [] });
    await healAll(node);
    await expectGone(node, { ref, sandboxId });
    await expectAlive(node, beside);
  });

  eachRuntime("removes a sandbox whose creation the runtime did not complete before it died", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const ref = podRef({ name: "web" });
    const { sandboxId } = await interruptedRun(node, ref);
    if (sandboxId === undefined) throw new Error("an interrupted run was expected to leave a sandbox");

    await healAll(node);

    await expectGone(node, { ref, sandboxId });
    await expectAlive(node, beside);
  });

  eachRuntime("removes the attempts that block after a clock step, oldest first", async (runtime) => {
    const node = await start({ runtime });
    const beside = await company(node);
    const uid = "stepped";
    const attempts = [];
    for (const attempt of [0, 1, 2]) {
      const pod = await runPod(node, { name: "web", uid, attempt });
      await node.cri.stopPodSandbox(pod.sandboxId, CALL);
      attempts.push(pod);
    }
    const [first, second, third] = attempts;
    if (first === undefined || second === undefined || third === undefined) throw new Error("three were made");
    await clockStep(node, second);
    await clockStep(node, third, 120n * NANOSECONDS);
    const ready = await runPod(node, { name: "other", uid: "other", attempt: 1 });
    const older = await runPod(node, { name: "other", uid: "other", attempt: 0 });
    await node.cri.stopPodSandbox(older.sandboxId, CALL);
    await clockStep(node, ready);

    const report = await healAll(node);

    expect(report.actions?.map(({ finding }) => finding.split("/")[1])).toEqual([second.sandboxId, third.sandboxId]);
    const journal = readFileSync(node.path("/var/lib/unghost/journal"), "utf8");
    expect(journal.indexOf(second.sandboxId)).toBeLessThan(journal.indexOf(third.sandboxId));
    expect(await listedIds(node)).toContain(first.sandboxId);
    await expectAlive(node, { ...beside, ready: [...beside.ready, ready] });
    await expectGone(node, second, third);
  });

  eachRuntime("skips such attempts while the clock cannot be right", async (runtime) => {
    const node = await start({ runtime });
    const later = await runPod(node, { name: "web", uid: "one", attempt: 1 });
    const sooner = await runPod(node, { name: "web", uid: "one", attempt: 0 });
    for (const { sandboxId } of [later, sooner]) await node.cri.stopPodSandbox(sandboxId, CALL);
    const tomorrow = BigInt(Math.floor(Date.now() / 1000) + 86_400) * NANOSECONDS;
    await clockStep(node, sooner, tomorrow);

    const { code, report } = await heal(node);

    expect(code).toBe(1);
    expect(report.actions).toMatchObject([
      { outcome: "skipped", code: "clock-in-doubt", reason: expect.stringContaining("set the clock") },
    ]);
    expect(await listedIds(node)).toContain(later.sandboxId);
  });
});
