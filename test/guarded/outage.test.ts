import { expect, test } from "vitest";
import { startDelegateDaemon, stopDelegateDaemon } from "../../lab/delegate-daemon.ts";
import { useMultusWithDaemon } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { apiKnows } from "../../lab/stub-api.ts";
import { ensureContainerd2 } from "../../lab/tools.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, guardDelegates, installGuard, queued, untilQueueIsEmpty } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

const PODS = Array.from({ length: 24 }, (_, index) => `web-${index}`);
const ATTEMPTS = 3;

await ensureContainerd2("2.1.6");

/** What a kubelet does with each pod while the network add-on's daemon is down. */
async function attempt(node: LabNode, name: string, number: number): Promise<"runs" | "failed"> {
  const spec = { name, uid: name, attempt: number };
  try {
    await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL);
    return "runs";
  } catch (error) {
    if (error instanceof RuntimeError) return "failed";
    throw error;
  }
}

test.each(["1.6", "2.1", "2.3"] as const)(
  "the daemon behind a delegate of multus is down, then back (%s)",
  async (runtime) => {
    const node = await start({ runtime });
    await useMultusWithDaemon(node);
    await installGuard(node);
    await guardDelegates(node);
    for (const name of PODS) await apiKnows(node, podRef({ name, uid: name }));
    await stopDelegateDaemon(node);

    for (let number = 0; number < ATTEMPTS; number++) {
      const ends = await Promise.all(PODS.map((name) => attempt(node, name, number)));
      expect(new Set(ends)).toEqual(new Set(["failed"]));
    }
    // No name is held, and nothing is left to remove.
    expect(await node.cri.listPodSandbox({}, CALL)).toEqual([]);
    console.log(`queued ${queued(node).length}`);

    await startDelegateDaemon(node);
    const backAt = performance.now();
    expect(new Set(await Promise.all(PODS.map((name) => attempt(node, name, 0))))).toEqual(new Set(["runs"]));
    const runAfter = performance.now() - backAt;
    await untilQueueIsEmpty(node);
    console.log(
      `all run after ${Math.round(runAfter)} ms, queue empty after ${Math.round(performance.now() - backAt)} ms`,
    );
    expect(addresses(node)).toHaveLength(PODS.length);
  },
);
