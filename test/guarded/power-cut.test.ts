import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { orderAtGate } from "../../lab/cni-gate.ts";
import { whyNoLoopDisk } from "../../lab/loop-disk.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, runPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { containerdRelease } from "../../lab/runtimes.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, installGuard, keepLater, queued } from "../e2e/guarded-node.ts";
import { AT_ONCE, unghostIn } from "../e2e/healed-node.ts";
import { UNGHOST } from "../e2e/unghost.ts";
import { CALL, eachRuntime, start } from "../lab/real-node.ts";

const noDisk = await whyNoLoopDisk("ext4");
const CUTS = 6;
const PODS = 6;
const GONE_MS = 60_000;

/** Pods come and go until the power fails at another moment each time. */
async function cutWhileBusy(node: LabNode, cut: number): Promise<void> {
  // As the agent does it: what plugins write reaches the disk soon.
  await node.check(["sh", "-c", `setsid ${UNGHOST} keep </dev/null >>/var/log/keep.log 2>&1 &`]);
  const before = await node.cri.listPodSandbox({}, CALL);
  const removing = before.map(({ id }) => remove(node, id));
  const adding = Array.from({ length: PODS }, (_, index) => {
    const spec = { name: `web-${cut}-${index}`, uid: `web-${cut}-${index}` };
    return node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL).catch(cutOff);
  });
  await sleep(100 + cut * 150);
  await node.powerCut();
  await Promise.all([...removing, ...adding]);
  await node.powerOn();
}

/** With the client of this boot. */
async function remove({ cri }: LabNode, id: string): Promise<void> {
  await cri.stopPodSandbox(id, CALL).catch(cutOff);
  await cri.removePodSandbox(id, CALL).catch(cutOff);
}

function cutOff(error: unknown): void {
  if (!(error instanceof RuntimeError)) throw error;
}

/** Host-local's own files, which a power cut may empty: the class hostlocal-empty-ip-file has those. */
function isWhole(node: LabNode, address: string): boolean {
  return readFileSync(node.path(`/var/lib/cni/networks/cbr0/${address}`), "utf8") !== "";
}

/** Kubelet removes what the runtime still knows; the agent comes later. */
async function settle(node: LabNode): Promise<void> {
  // A result of libcni that the cut has emptied stops containerd 1.x before it calls any plugin (class B1).
  if (containerdRelease(node.runtime).corruptResultBlocks) await unghostIn(node, ["heal", "--yes", ...AT_ONCE]);
  await until("every sandbox is removed", GONE_MS, async () => {
    const left = await node.cri.listPodSandbox({}, CALL);
    for (const { id } of left) await remove(node, id);
    return left.length === 0 || undefined;
  });
  await runPod(node, { name: "last" });
  const before = addresses(node).length;
  await until("the queue is empty", GONE_MS, async () => {
    await keepLater(node);
    return queued(node).length === 0 || undefined;
  });
  console.log(`${before} addresses before the queue has run, ${addresses(node).length} after`);
}

describe.skipIf(noDisk !== undefined)(`power cuts on a disk that loses what was not synced${noDisk ?? ""}`, () => {
  eachRuntime("leave no ghost, and no address when the queue has run", async (runtime) => {
    const node = await start({ runtime, disk: "ext4" });
    await installGuard(node);
    await node.check(["sync", "-f", "/var"]);
    for (let cut = 0; cut < CUTS; cut++) await cutWhileBusy(node, cut);

    await settle(node);

    expect(addresses(node).filter((address) => isWhole(node, address))).toHaveLength(1);
  });

  eachRuntime("an ADD that was ended after it had allocated is released", async (runtime) => {
    const node = await start({ runtime, disk: "ext4" });
    await installGuard(node);
    await orderAtGate(node, "ADD", "web", '"$0.real"; sleep 1000000000\n');
    const ref = podRef({ name: "web" });
    const adding = node.cri.runPodSandbox(sandboxConfig(ref, ref), CALL).catch(cutOff);
    await until("it has an address", GONE_MS, () => addresses(node).length > 0 || undefined);
    await node.check(["sync", "-f", "/var"]);
    await node.powerCut();
    await adding;
    await node.powerOn();

    await settle(node);

    expect(addresses(node)).toHaveLength(1);
  });
});
