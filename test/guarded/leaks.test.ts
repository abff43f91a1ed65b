import { expect, test } from "vitest";
import { EVERY_POD, liftOrder, orderAtGate, refusal } from "../../lab/cni-gate.ts";
import { DELEGATE } from "../../lab/delegate-daemon.ts";
import { useMultusWithDaemon } from "../../lab/multus.ts";
import type { LabNode } from "../../lab/node.ts";
import { podRef, sandboxConfig } from "../../lab/pods.ts";
import { apiKnows } from "../../lab/stub-api.ts";
import { RuntimeError } from "../../src/runtime/errors.ts";
import { addresses, guardDelegates, installGuard, untilQueueIsEmpty } from "../e2e/guarded-node.ts";
import { CALL, start } from "../lab/real-node.ts";

const PODS = ["a", "b", "c", "d"];
const ATTEMPTS = 3;
const FAILED = PODS.length * ATTEMPTS;

/** The numbers of docs/guard.md. containerd 2.3 releases the names without the guard, and leaks the addresses. */
test.each([
  { runtime: "1.6", isGuarded: false, held: FAILED, started: 0, leaked: FAILED },
  { runtime: "1.6", isGuarded: true, held: 0, started: PODS.length, leaked: 0 },
  { runtime: "2.3", isGuarded: false, held: 0, started: PODS.length, leaked: FAILED },
  { runtime: "2.3", isGuarded: true, held: 0, started: PODS.length, leaked: 0 },
] as const)("an ADD that fails late, and its roll-back (containerd $runtime, guard: $isGuarded)", async (expected) => {
  const node = await start({ runtime: expected.runtime });
  await useMultusWithDaemon(node);
  if (expected.isGuarded) {
    await installGuard(node);
    await guardDelegates(node);
  }
  await orderAtGate(node, "ADD", EVERY_POD, `"$0.real" >/dev/null; ${refusal("a later part failed")}`, DELEGATE);
  await orderAtGate(node, "DEL", EVERY_POD, refusal("dial unix /x: connect: connection refused"), DELEGATE);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) await addAll(node, attempt);
  expect(await node.cri.listPodSandbox({}, CALL)).toHaveLength(expected.held);
  expect(addresses(node)).toHaveLength(FAILED);

  await liftOrder(node, "ADD", EVERY_POD);
  await liftOrder(node, "DEL", EVERY_POD);
  expect(await addAll(node, 0)).toBe(expected.started);
  if (expected.isGuarded) await untilQueueIsEmpty(node);
  expect(addresses(node)).toHaveLength(expected.started + expected.leaked);
});

/** How many run. */
async function addAll(node: LabNode, attempt: number): Promise<number> {
  const ends = await Promise.all(
    PODS.map(async (name) => {
      const spec = { name, uid: name, attempt };
      await apiKnows(node, podRef(spec));
      try {
        await node.cri.runPodSandbox(sandboxConfig(spec, podRef(spec)), CALL);
        return true;
      } catch (error) {
        if (error instanceof RuntimeError) return false;
        throw error;
      }
    }),
  );
  return ends.filter(Boolean).length;
}
