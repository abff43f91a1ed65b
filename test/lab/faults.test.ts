import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { clockStep } from "../../lab/faults/clock-step.ts";
import { duplicateRecord } from "../../lab/faults/duplicate-record.ts";
import { emptyFlannelScratch, useFlannel } from "../../lab/faults/flannel-scratch.ts";
import { emptyLease, leakedLease } from "../../lab/faults/host-local.ts";
import { hangingDel, hungAdd, pluginOf } from "../../lab/faults/hung-plugin.ts";
import { interruptedRun } from "../../lab/faults/interrupted-run.ts";
import { leakedContainerdLease } from "../../lab/faults/leaked-containerd-lease.ts";
import { leakedNetns, leftoverNetnsFile } from "../../lab/faults/leaked-netns.ts";
import { leakedShim } from "../../lab/faults/leaked-shim.ts";
import { chainedNetwork, missingNetwork, missingPlugin } from "../../lab/faults/missing-plugin.ts";
import { consumedMultusCache, emptyMultusCache, multusDeadlock, runMultusPod } from "../../lab/faults/multus.ts";
import { orphanedCache } from "../../lab/faults/orphaned-cache.ts";
import { acceptDel, failedRollback, refusingDel } from "../../lab/faults/refusing-plugin.ts";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import { useMultus } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { runPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { apiForgets } from "../../lab/stub-api.ts";
import { ensureMultus } from "../../lab/tools.ts";
import { ZERO_TIME } from "../../src/node/types/runtime.ts";
import { openContainerd } from "../../src/runtime/containerd.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { PodSandboxState } from "../../src/runtime/gen/runtime/v1/cri.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "./real-node.ts";

const multus = NO_REAL_NODE === undefined ? await ensureMultus() : { available: false as const, reason: NO_REAL_NODE };

describe.skipIf(NO_REAL_NODE !== undefined)("faults of a real node", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("a broken result cache blocks removal on containerd 1.x alone", async (runtime) => {
    const node = await start({ runtime });
    const emptied = await runPod(node, { name: "emptied" });
    const halved = await runPod(node, { name: "halved" });

    await emptyResultCache(node, emptied);
    await halfWrittenResultCache(node, halved);

    for (const pod of [emptied, halved]) {
      const outcome = containerdRelease(runtime).corruptResultBlocks ? /unexpected end of JSON input/ : /^removed$/;
      expect(await removal(node, pod.sandboxId)).toMatch(outcome);
    }
  });

  eachRuntime("a hung ADD holds the name unlisted until its process is ended", async (runtime) => {
    const node = await start({ runtime });

    const hung = await hungAdd(node, { name: "web" });

    const again = sandboxConfig({ name: "web", uid: hung.ref.uid });
    expect(await node.cri.listPodSandbox(undefined, CALL)).toEqual([]);
    await expect(node.cri.runPodSandbox(again, CALL)).rejects.toThrow(`is reserved for "${hung.sandboxId}"`);
    await node.kill(hung.pid);
    await until("the name is free", CALL.timeoutMs, () =>
      node.cri.runPodSandbox(again, CALL).catch((error: unknown) => {
        if (error instanceof RuntimeError) return undefined;
        throw error;
      }),
    );
  });

  eachRuntime("a hung DEL outlives its caller", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web" });

    await hangingDel(node, pod);

    await expect(node.cri.stopPodSandbox(pod.sandboxId, { timeoutMs: 1000 })).rejects.toThrow(RuntimeError);
    expect(pluginOf(node, "DEL", "web")).toMatchObject({ sandboxId: pod.sandboxId });
  });

  eachRuntime("a failing DEL blocks removal until it succeeds", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web" });

    await refusingDel(node, pod);

    expect(await removal(node, pod.sandboxId)).toMatch(/server_socket is required/);
    await acceptDel(node, pod);
    expect(await removal(node, pod.sandboxId)).toBe("removed");
  });

  eachRuntime("a failed rollback leaves a sandbox, with or without its time, or none", async (runtime) => {
    const node = await start({ runtime });

    const ghost = await failedRollback(node, { name: "web" });

    const listed = await node.cri.listPodSandbox(undefined, CALL);
    const { failedRollback: outcome } = containerdRelease(runtime);
    if (outcome === "is gone") expect([ghost, listed]).toEqual([undefined, []]);
    else expect(listed).toMatchObject([{ id: ghost?.sandboxId, state: PodSandboxState.SANDBOX_NOTREADY }]);
    expect(listed.some(({ createdAt }) => createdAt === ZERO_TIME)).toBe(outcome === "stays with zero time");
  });

  eachRuntime("an interrupted RunPodSandbox comes back NotReady, with or without its time", async (runtime) => {
    const node = await start({ runtime });

    const ghost = await interruptedRun(node, { name: "web" });

    const [sandbox] = await node.cri.listPodSandbox(undefined, CALL);
    expect(sandbox?.id).toBe(ghost.sandboxId);
    expect(sandbox?.createdAt === ZERO_TIME).toBe(containerdRelease(runtime).interruptedRun === "stays with zero time");
  });

  eachRuntime("a clock step reverses the order of two attempts", async (runtime) => {
    const node = await start({ runtime });
    const first = await runPod(node, { name: "web", uid: "one", attempt: 0 });
    await node.cri.stopPodSandbox(first.sandboxId, CALL);
    const second = await runPod(node, { name: "web", uid: "one", attempt: 1 });

    await clockStep(node, second);

    const created = new Map(
      (await node.cri.listPodSandbox(undefined, CALL)).map(({ id, createdAt }) => [id, createdAt]),
    );
    expect(created.get(second.sandboxId)).toBeLessThan(created.get(first.sandboxId) ?? 0n);
  });

  eachRuntime("a duplicate record is harmless until the runtime restarts", async (runtime) => {
    const node = await start({ runtime });
    const pod = await runPod(node, { name: "web" });

    const duplicate = await duplicateRecord(node, pod);

    expect(await recordIds(node)).toEqual(new Set([pod.sandboxId, duplicate.sandboxId]));
    expect(await node.cri.listPodSandbox(undefined, CALL)).toHaveLength(1);
    await expect(node.restartRuntime()).rejects.toThrow(/failed to reserve sandbox name/);
  });

  eachRuntime("a leaked shim runs without a record and leaks nothing else", async (runtime) => {
    const node = await start({ runtime });

    const leak = await leakedShim(node);

    expect(processesOf(node).map(({ pid }) => pid)).toContain(leak.pid);
    expect(await recordIds(node)).toEqual(new Set());
    expect(await node.cri.listPodSandbox(undefined, CALL)).toEqual([]);
    expect(readdirSync(node.path("/var/lib/cni"))).toEqual([]);
  });

  eachRuntime("an empty flannel scratch file blocks removal", async (runtime) => {
    const node = await start({ runtime });
    await useFlannel(node);
    const [broken, sound] = [await runPod(node, { name: "broken" }), await runPod(node, { name: "sound" })];

    await emptyFlannelScratch(node, broken);

    expect(await removal(node, broken.sandboxId)).toMatch(/failed to parse netconf: unexpected end of JSON input/);
    expect(await removal(node, sound.sandboxId)).toBe("removed");
    expect(readdirSync(node.path("/var/lib/cni/flannel"))).toEqual([broken.sandboxId]);
  });

  eachRuntime("a missing chained plugin blocks removal, a missing network shows in the status", async (runtime) => {
    const node = await start({ runtime, cni: chainedNetwork() });
    const pod = await runPod(node, { name: "web" });

    await missingPlugin(node);
    expect(await removal(node, pod.sandboxId)).toMatch(/failed to find plugin "tuning"/);

    await missingNetwork(node);
    await expect(runPod(node, { name: "next" })).rejects.toThrow(/cni/);
  });

  test("files and leases of unknown sandboxes have the format of real ones", async () => {
    const node = await start();
    const pod = await runPod(node, { name: "web" });

    const lease = await leakedLease(node);
    const empty = await emptyLease(node);
    const cache = await orphanedCache(node);
    const netns = await leakedNetns(node);
    const plain = await leftoverNetnsFile(node);
    const containerdLease = await leakedContainerdLease(node);

    const own = readFileSync(node.path("/var/lib/cni/networks/cbr0/10.88.0.2"), "utf8");
    expect(own).toBe(`${pod.sandboxId}\r\neth0`);
    expect(readFileSync(node.path(lease.path ?? ""), "utf8")).toBe(`${lease.sandboxId}\r\neth0`);
    expect(statSync(node.path(empty.path ?? "")).size).toBe(0);
    expect(JSON.parse(readFileSync(node.path(cache.path ?? ""), "utf8"))).toMatchObject({ kind: "cniCacheV1" });
    const mounts = await node.check(["cat", "/proc/self/mountinfo"]);
    expect(mounts).toContain(netns.path);
    expect(mounts).not.toContain(plain.path);
    expect(existsSync(node.livePath(plain.path ?? ""))).toBe(true);
    const containerd = openContainerd(node.socket);
    expect((await containerd.listLeases(CALL)).map(({ id }) => id)).toEqual([containerdLease.sandboxId]);
    containerd.close();
  });

  test.skipIf(!multus.available)(
    "multus: the deadlock, the consumed cache and the cache lost in a power cut",
    async () => {
      const node = await start();
      await useMultus(node);

      const deadlock = await multusDeadlock(node, { name: "deadlock" });
      const consumed = await consumedMultusCache(node, { name: "consumed" });
      const lost = await runMultusPod(node, { name: "lost" });
      await emptyMultusCache(node, lost);

      const listed = new Map(
        (await node.cri.listPodSandbox(undefined, CALL)).map(({ id, createdAt }) => [id, createdAt]),
      );
      expect(listed.get(deadlock?.sandboxId ?? "")).toBe(ZERO_TIME);
      for (const id of [deadlock?.sandboxId ?? "", consumed.sandboxId]) {
        expect(await removal(node, id)).toMatch(/DelegateDel: .*server_socket is required/);
      }
      await apiForgets(node, consumed.ref);
      expect(await removal(node, consumed.sandboxId)).toBe("removed");
      const before = readdirSync(node.path("/var/lib/cni/networks/cbr0")).length;
      expect(await removal(node, lost.sandboxId)).toBe("removed");
      expect(readdirSync(node.path("/var/lib/cni/networks/cbr0"))).toHaveLength(before);
    },
  );
});

async function removal(node: LabNode, id: string): Promise<string> {
  try {
    await node.cri.removePodSandbox(id, CALL);
    return "removed";
  } catch (error) {
    return (error as RuntimeError).text;
  }
}

async function recordIds(node: LabNode): Promise<ReadonlySet<string>> {
  const containerd = openContainerd(node.socket);
  const records = await containerd.listContainers(CALL);
  containerd.close();
  return new Set(records.map(({ id }) => id));
}
