import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, runPod, sandboxConfig } from "../../lab/pods.ts";
import { CONTAINERD_CONFIG } from "../../lab/runtime-config.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { addresses, decisions, guardStatus, installGuard, queued, untilReplayed } from "./guarded-node.ts";
import { unghostIn } from "./healed-node.ts";

const why = NO_REAL_NODE === undefined ? "" : `: skipped, ${NO_REAL_NODE}`;
const AWAY = 'RPC failed; Post "http://dummy/api/v1/del": dial unix /run/x.sock: connect: connection refused';

describe.skipIf(NO_REAL_NODE !== undefined)(`the CNI guard${why}`, { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("is in the way of every plugin, and uninstall leaves no byte behind", async (runtime) => {
    const node = await start({ runtime });
    const before = readFileSync(node.path(CONTAINERD_CONFIG));
    const earlier = await runPod(node, { name: "earlier" });
    const dry = await unghostIn(node, ["cni", "install", "--dry-run"]);
    expect([dry.code, readFileSync(node.path(CONTAINERD_CONFIG)).equals(before)]).toEqual([0, true]);

    await installGuard(node);
    const pod = await runPod(node, { name: "web" });
    expect(await guardStatus(node)).toMatchObject({
      code: 0,
      inEffect: true,
      attachments: 1,
      networks: [{ network: "cbr0", plugins: [{ name: "bridge", path: "/opt/cni/bin/bridge", guarded: true }] }],
    });
    expect(addresses(node)).toHaveLength(2);
    for (const { sandboxId } of [earlier, pod]) {
      await node.cri.stopPodSandbox(sandboxId, CALL);
      await node.cri.removePodSandbox(sandboxId, CALL);
    }
    expect(addresses(node)).toEqual([]);
    expect(await guardStatus(node)).toMatchObject({ attachments: 0, queue: 0, decisions: {} });

    const early = await unghostIn(node, ["cni", "uninstall", "--yes"]);
    expect(readFileSync(node.path(CONTAINERD_CONFIG)).toString()).toBe(before.toString());
    if (containerdRelease(runtime).config === 2) {
      expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining("stays until the runtime is restarted") });
      await runPod(node, { name: "between" });
      await node.restartRuntime();
      expect(await unghostIn(node, ["cni", "uninstall", "--yes"])).toMatchObject({ code: 0 });
    } else {
      expect(early.code).toBe(0);
    }
    await runPod(node, { name: "after" });
    expect(readdirSync(node.path("/opt/unghost"))).toEqual([]);
  });

  eachRuntime("an ADD and a roll-back that fail hold no name, and what was queued is released", async (runtime) => {
    const node = await start({ runtime });
    await installGuard(node);
    await orderAtGate(node, "DEL", "web", refusal(AWAY));
    // The plugin itself has done its part: an address that its DEL has to release.
    await orderAtGate(node, "ADD", "web", `"$0.real" >/dev/null; ${refusal("the daemon went away")}`);
    await expect(run(node)).rejects.toThrow(RuntimeError);
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
    expect([queued(node).length, addresses(node).length]).toEqual([1, 1]);

    await liftOrder(node, "ADD", "web");
    await liftOrder(node, "DEL", "web");
    await run(node);

    await untilReplayed(node);
    expect(addresses(node)).toHaveLength(1);
    expect(decisions(node).map(({ code }) => code)).toEqual(["add-never-completed", "replayed"]);
  });

  test("a plugin that never ends is ended, and its DEL is answered (containerd 1.6)", async () => {
    const node = await start();
    await installGuard(node);
    const pod = await runPod(node, { name: "web" });
    await orderAtGate(node, "DEL", "web", "sleep 1000000000 &\nexit 0\n");

    await node.cri.stopPodSandbox(pod.sandboxId, CALL);
    await node.cri.removePodSandbox(pod.sandboxId, CALL);

    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
  });
});

async function run(node: LabNode): Promise<void> {
  const spec = { name: "web", uid: "web" };
  await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL);
}
