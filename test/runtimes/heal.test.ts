import { readFileSync } from "node:fs";
import { describe, expect } from "vitest";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import { runPods, sandboxConfig } from "../../lab/pods.ts";
import { CONTAINERD_CONFIG } from "../../lab/runtime-config.ts";
import { healAll, unghostIn } from "../e2e/healed-node.ts";
import { readyPods } from "../e2e/scanned-node.ts";
import { CALL, eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";

const PODS = 6;

describe.skipIf(NO_REAL_NODE !== undefined)("after a power cut with torn caches", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("heal removes the dead sandboxes, and every pod starts under its name", async (runtime) => {
    const node = await start({ runtime });
    const dead = await tornByPowerCut(node);
    await node.powerOn();
    const ready = await readyPods(node);

    await healAll(node);

    const listed = await node.cri.listPodSandbox(undefined, CALL);
    expect(listed.map(({ id }) => id).toSorted()).toEqual(ready.map(({ sandboxId }) => sandboxId as string).toSorted());
    for (const { ref } of dead) await node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL);
  });

  eachRuntime("the boot hook heals through the node's own containerd before it starts", async (runtime) => {
    const node = await start({ runtime });
    await tornByPowerCut(node);
    await node.powerOn({ runtime: false });

    const { stdout } = await unghostIn(node, ["boot", "--no-kube", "--containerd-config", CONTAINERD_CONFIG]);

    const report = JSON.parse(readFileSync(node.path("/var/lib/unghost/boot.json"), "utf8"));
    expect(report, stdout).toMatchObject({ outcome: "healed", reason: "no ghosts are left" });
    await node.startRuntime();
    expect(await node.cri.listPodSandbox(undefined, CALL)).toEqual([]);
  });
});

async function tornByPowerCut(node: Awaited<ReturnType<typeof start>>) {
  const pods = await runPods(node, PODS, { containers: [{ name: "main" }] });
  await node.powerCut();
  const [first, second] = pods;
  if (first !== undefined) await emptyResultCache(node, first);
  if (second !== undefined) await halfWrittenResultCache(node, second);
  return pods;
}
