import { expect, test } from "vitest";
import { EVERY_POD, liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { fillDisk, freeDisk } from "../../lab/faults/full-disk.ts";
import { whyNoLoopDisk } from "../../lab/loop-disk.ts";
import type { LabNode } from "../../lab/node.ts";
import { processesOf } from "../../lab/node-processes.ts";
import { podRef, runPod, sandboxConfig } from "../../lab/pods.ts";
import { until } from "../../lab/poll.ts";
import { PASSED_ON_TIMES } from "../../src/guard/decide.ts";
import { GUARD_PROGRAM, GUARD_STATE_DIR } from "../../src/guard/home.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, installGuard, queued, untilReplayed } from "../e2e/guarded-node.ts";
import { CALL, eachRuntime, start } from "../lab/real-node.ts";

const KILLS = 50;
const FIND_MS = 20_000;
/** Longer than the pauses between attempts on one DEL. */
const DRAIN_MS = 120_000;

eachRuntime("50 kills of the guard at any moment of an ADD or a DEL leave no ghost and no address", async (runtime) => {
  const node = await start({ runtime });
  await installGuard(node);
  // Every third DEL fails at first, so that the decision is killed, too.
  await orderAtGate(node, "DEL", EVERY_POD, `sleep 0.05; [ $(($$ % 3)) -gt 0 ] || { ${refusal("not now").trim()}; }`);
  await orderAtGate(node, "ADD", EVERY_POD, "sleep 0.05\n");
  let killed = 0;
  for (let number = 0; killed < KILLS; number++) {
    const spec = { name: `web-${number}`, uid: `web-${number}` };
    const isAdd = number % 2 === 0;
    const adding = node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL).catch(ignoreRefusal);
    if (isAdd) killed += await killGuard(node, number);
    await adding;
    const removing = removeAll(node);
    if (!isAdd) killed += await killGuard(node, number);
    await removing;
  }
  await liftOrder(node, "DEL", EVERY_POD);
  await until("nothing is left", FIND_MS, async () => {
    await removeAll(node);
    return (await node.cri.listPodSandbox({}, CALL)).length === 0 || undefined;
  });

  await runPod(node, { name: "last" });
  // No agent runs here: what failed a moment ago is repeated later, by the next caller.
  await until(
    () => `the queue is empty: ${queued(node).join()}`,
    DRAIN_MS,
    async () => {
      await node.check([GUARD_PROGRAM, "cni-call", "keep", GUARD_STATE_DIR]);
      return queued(node).length === 0 || undefined;
    },
  );
  expect(addresses(node)).toHaveLength(1);
});

/** kill -9 of whatever of the guard runs after a moment: the launcher, or the decision. */
async function killGuard(node: LabNode, seed: number): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, (seed * 37) % 90));
  const found = processesOf(node).find(({ command }) => command[0]?.startsWith("/opt/unghost/cni/") === true);
  if (found === undefined) return 0;
  await node.kill(found.pid);
  return 1;
}

async function removeAll(node: LabNode): Promise<void> {
  for (const { id } of await node.cri.listPodSandbox({}, CALL)) {
    await node.cri.stopPodSandbox(id, CALL).catch(ignoreRefusal);
    await node.cri.removePodSandbox(id, CALL).catch(ignoreRefusal);
  }
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof RuntimeError)) throw error;
}

const noDisk = await whyNoLoopDisk("ext4");

test.skipIf(noDisk !== undefined)(
  `on a full disk the plugin is called, and its own error is passed on${noDisk ?? ""}`,
  async () => {
    const node = await start({ disk: "ext4" });
    await installGuard(node);
    const [good, bad] = [await runPod(node, { name: "good" }), await runPod(node, { name: "bad" })];
    await orderAtGate(node, "DEL", "bad", refusal("the plugin's own words"));
    await fillDisk(node);

    await node.cri.stopPodSandbox(good.sandboxId, CALL);
    // Its files are gone, and their blocks free again.
    await fillDisk(node);
    for (let times = 0; times < 6; times++)
      await expect(node.cri.stopPodSandbox(bad.sandboxId, CALL)).rejects.toThrow("the plugin's own words");
    expect(queued(node)).toEqual([]);

    await freeDisk(node);
    // The first of the earlier failures may have been counted: its file found room.
    const ends: boolean[] = [];
    while (ends.at(-1) !== true && ends.length < PASSED_ON_TIMES)
      ends.push(
        await node.cri.stopPodSandbox(bad.sandboxId, CALL).then(
          () => true,
          () => false,
        ),
      );
    expect(ends.at(-1)).toBe(true);
    expect(queued(node)).toHaveLength(1);
    await liftOrder(node, "DEL", "bad");
    await runPod(node, { name: "next" });
    await untilReplayed(node);
    expect(addresses(node)).toHaveLength(1);
  },
);
