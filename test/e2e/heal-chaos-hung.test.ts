import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { liftOrder } from "../../lab/cni-gate.ts";
import { hangingDel } from "../../lab/faults/hung-plugin.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { type LabPod, runPods } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { eachRuntime, HANG_GUARD_MS, NO_REAL_NODE, start } from "../lab/real-node.ts";
import { AT_ONCE, expectAlive, heal, listedIds } from "./healed-node.ts";
import { openEntries, startHeal } from "./running-heal.ts";
import { company } from "./scanned-node.ts";

async function ghosts(node: LabNode, count: number, hung: number): Promise<readonly LabPod[]> {
  const pods = await runPods(node, count, { name: "ghost" });
  for (const pod of pods.slice(0, hung)) await hangingDel(node, pod);
  await node.powerCut();
  await node.powerOn();
  return pods;
}

/** Waits until none of the pods is listed any more. */
async function gone(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  await until("the others are gone", HANG_GUARD_MS, async () => {
    const listed = await listedIds(node);
    return pods.some(({ sandboxId }) => listed.includes(sandboxId)) ? undefined : true;
  });
}

/** The network works again: nothing hangs any more, and hung processes have ended. */
async function mend(node: LabNode, pods: readonly LabPod[]): Promise<void> {
  for (const { ref } of pods) await liftOrder(node, "DEL", ref.name);
  for (const { pid, environment } of processesOf(node)) {
    if (environment.get("CNI_COMMAND") === "DEL") await node.kill(pid);
  }
}

describe.skipIf(NO_REAL_NODE !== undefined)("heal of sandboxes whose DEL hangs", { timeout: HANG_GUARD_MS }, () => {
  eachRuntime("removes the others while five hang, and ends in order when it is interrupted", async (runtime) => {
    const node = await start({ runtime });
    const pods = await ghosts(node, 30, 5);
    const beside = await company(node);
    const [hung, others] = [pods.slice(0, 5), pods.slice(5)];

    const running = startHeal(node);
    await gone(node, others);
    expect(running.hasEnded()).toBe(false);
    await running.signal("INT");
    const { code, stdout, stderr } = await running.ended;

    expect([code, stderr]).toEqual([1, expect.stringContaining("Stopping")]);
    // Equal results share a line above twenty findings.
    expect(stdout).toMatch(/^healed .*, \+24 /m);
    expect(stdout).toMatch(/^failed .*, \+4 .*\n {2}(?:.*given up|as )/m);
    expect(stdout).toMatch(/NOT ALL HEALED {2}25 healed, 5 findings left/);
    expect(readFileSync(node.path("/var/lib/unghost/lock"), "utf8")).toBe("");
    expect(await openEntries(node)).toEqual([]);
    await expectAlive(node, beside);

    await mend(node, hung);
    expect((await heal(node)).code).toBe(0);
    await gone(node, pods);
  });

  test("removes the others although more hang than the concurrency limit", async () => {
    const node = await start();
    const pods = await ghosts(node, 16, 6);

    const running = startHeal(node, [...AT_ONCE, "--concurrency", "2"]);
    await gone(node, pods.slice(6));
    expect(running.hasEnded()).toBe(false);
    await running.signal("TERM");
    await running.signal("TERM");
    const { code, stdout } = await running.ended;

    expect(code).toBe(1);
    expect(stdout.match(/^waiting/gm)).toHaveLength(1);
    expect(await openEntries(node)).toEqual([]);
  });
});
