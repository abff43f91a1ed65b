import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { unaccountedFor } from "../../lab/chaos/quarantine-check.ts";
import { seeded } from "../../lab/chaos/random.ts";
import { emptyResultCache, halfWrittenResultCache } from "../../lab/faults/result-cache.ts";
import type { LabNode } from "../../lab/node.ts";
import { type LabPod, runPods } from "../../lab/pods.ts";
import { HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { expectAlive, expectGone, heal, quarantine } from "./healed-node.ts";
import { openEntries, startHeal } from "./running-heal.ts";
import { company } from "./scanned-node.ts";

const KILLS = 12;
const LATEST_MS = 500;

/** Six sandboxes that died in a power cut, half of them with torn caches. */
async function corruptSandboxes(node: LabNode, name: string): Promise<readonly LabPod[]> {
  const pods = await runPods(node, 6, { name, containers: [{ name: "main" }] });
  await node.powerCut();
  await node.powerOn();
  for (const [index, pod] of pods.entries()) await (index % 2 ? halfWrittenResultCache : emptyResultCache)(node, pod);
  return pods;
}

/** Every corrupt file and the logs are in quarantine and in the journal, and no entry is open. */
async function expectNothingLost(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  const files = [...quarantine(node).keys()];
  for (const { sandboxId } of pods) expect(files.filter((file) => file.includes(sandboxId))).not.toEqual([]);
  expect(await unaccountedFor(node)).toEqual([]);
  expect(await openEntries(node)).toEqual([]);
}

describe.skipIf(NO_REAL_NODE !== undefined)("an interrupted heal", { timeout: HANG_GUARD_MS }, () => {
  test(`loses nothing after ${KILLS} kill -9, and the next heal completes`, async () => {
    const random = seeded(Date.now());
    const node = await start();
    const pods = await corruptSandboxes(node, "ghost");
    const beside = await company(node);

    for (let kill = 0; kill < KILLS; kill++) {
      const running = startHeal(node);
      await sleep(random.below(LATEST_MS));
      await running.signal("KILL");
      await running.ended;
      expect(await unaccountedFor(node)).toEqual([]);
    }

    expect((await heal(node)).code).toBe(0);
    await expectNothingLost(node, pods);
    await expectAlive(node, beside);
    await expectGone(node, ...pods);
  });

  test("loses nothing after power cuts, and the next heal completes", async () => {
    const random = seeded(Date.now());
    const node = await start();
    const pods = await corruptSandboxes(node, "ghost");

    for (let cut = 0; cut < 5; cut++) {
      const running = startHeal(node);
      await sleep(50 + random.below(LATEST_MS));
      await node.powerCut();
      await running.ended;
      await node.powerOn();
      expect(await unaccountedFor(node)).toEqual([]);
    }

    expect((await heal(node)).code).toBe(0);
    await expectNothingLost(node, pods);
    await expectGone(node, ...pods);
  });
});
