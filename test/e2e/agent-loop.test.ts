import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished } from "vitest";
import { emptyResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPod, runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, expectGone, isQuarantined, listedIds } from "./healed-node.ts";
import { BY_TRIGGERS_ALONE, healedBy, type RunningAgent, startAgent } from "./running-agent.ts";
import { company } from "./scanned-node.ts";

const GONE_MS = 120_000;

/** The node's root for an agent that outlives the node's boots: the link is changed after each boot. */
function rootOf(node: LabNode): { readonly path: string; readonly turn: () => void } {
  const dir = mkdtempSync(join(tmpdir(), "unghost-agent-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const path = join(dir, "root");
  const turn = (): void => {
    rmSync(path, { force: true });
    symlinkSync(`/proc/${node.initPid}/root`, path);
  };
  turn();
  return { path, turn };
}

function agentOf(root: string): RunningAgent {
  return startAgent([...BY_TRIGGERS_ALONE, "--host-root", root]);
}

async function untilGone(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  await until("the agent has removed what died", GONE_MS, async () => {
    const listed = new Set(await listedIds(node));
    return pods.some(({ sandboxId }) => listed.has(sandboxId)) ? undefined : true;
  });
}

describe.skipIf(NO_REAL_NODE !== undefined)("the agent on a real node", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heals all pods of a power cut as soon as the runtime answers again", async (runtime) => {
    const node = await start({ runtime });
    const root = rootOf(node);
    const agent = agentOf(root.path);
    const pods = await runPods(node, 30, { name: "pod", containers: [{ name: "main" }] });

    await node.powerCut();
    await node.powerOn({ runtime: false });
    root.turn();
    await node.startRuntime();
    await untilGone(node, pods);

    await expectGone(node, ...pods.slice(0, 3));
    await agent.logged("ghost healed", () => healedBy(agent).length === pods.length);
    expect(await agent.stop()).toBe(0);
    const warnings = agent.lines.filter(({ level }) => level !== "info").map(({ msg }) => msg);
    expect([...new Set(warnings)].toSorted()).toEqual([
      "ghost detected",
      "journald unavailable; relying on periodic scans",
      "verdict changed",
    ]);
  });

  eachRuntime("heals a pod whose cache was truncated when its stop fails", async (runtime) => {
    const node = await start({ runtime });
    const agent = agentOf(rootOf(node).path);
    const beside = await company(node);
    const pod = await runPod(node, { name: "victim", containers: [{ name: "main" }] });
    const { path = "" } = await emptyResultCache(node, pod);

    // Since 2.0 the runtime ignores such a file, and there is nothing to heal.
    const stop = await node.cri.stopPodSandbox(pod.sandboxId, CALL).then(
      () => "stopped",
      () => "failed",
    );
    if (stop === "failed") {
      await agent.logged("ghost healed", ({ finding }) => finding?.includes(pod.sandboxId) === true);
      expect(isQuarantined(node, path)).toBe(true);
      await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    }

    expect(stop).toBe(containerdRelease(runtime).corruptResultBlocks ? "failed" : "stopped");
    await expectAlive(node, beside);
    expect(await agent.stop()).toBe(0);
  });

  eachRuntime("survives a killed and restarted runtime, and does not touch running pods", async (runtime) => {
    const node = await start({ runtime });
    const agent = startAgent([...BY_TRIGGERS_ALONE, "--host-root", rootOf(node).path, "--log-level", "debug"]);
    const answers = (): number => agent.lines.filter(({ from }) => from === "runtime answers").length;
    await agent.logged("hint", ({ from }) => from === "runtime answers");
    const beside = await company(node);
    const scans = (): number => agent.lines.filter(({ msg }) => msg === "scanned").length;

    await node.killRuntime();
    await agent.logged("hint", ({ from }) => from === "runtime gone");
    await node.startRuntime();
    await until("the agent sees the runtime again", GONE_MS, () => answers() === 2 || undefined);
    const before = scans();
    await until("the agent scans again", GONE_MS, () => scans() > before || undefined);

    await expectAlive(node, beside);
    expect(healedBy(agent)).toEqual([]);
    const other = await runPod(node, { name: "other" });
    await node.cri.stopPodSandbox(other.sandboxId, CALL);
    await agent.logged("hint", ({ from }) => from === "containerd /tasks/exit");
    expect(await agent.stop()).toBe(0);
  });

  eachRuntime("as a service it completes an action after its own kill -9", async (runtime) => {
    const node = await start({ runtime });
    const pods = await runPods(node, 20, { name: "pod" });
    await node.powerCut();
    await node.powerOn();
    const root = rootOf(node).path;
    const first = agentOf(root);
    await first.logged("ghost detected");
    first.signal("SIGKILL");
    await until("the first agent has ended", GONE_MS, () => first.process.signalCode ?? undefined);

    const second = agentOf(root);
    await untilGone(node, pods);

    await expectGone(node, ...pods.slice(0, 3));
    expect(await second.stop()).toBe(0);
  });
});
