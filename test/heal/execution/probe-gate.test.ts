import { describe, expect, test } from "vitest";
import { probeGate } from "../../../src/heal/execution/turns.ts";

const HANG_GUARD_MS = 60_000;

function gateWith(patienceMs: number, mostUnanswered: number) {
  const gate = probeGate({ patienceMs, mostUnanswered });
  const under: { succeed: () => void; fail: () => void }[] = [];
  const results: Promise<number | undefined | "failed">[] = [];
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => under.push({ succeed: resolve, fail: () => reject(new Error("no")) }));
  return {
    under,
    ask: (count: number) => {
      for (let asked = 0; asked < count; asked += 1) results.push(gate.run(call).catch(() => "failed" as const));
    },
    results: () => Promise.all(results),
  };
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the probe gate", () => {
  test("makes one call, and all others once it has succeeded", async () => {
    const { under, ask } = gateWith(HANG_GUARD_MS, 2);
    ask(28);
    await settled();
    expect(under).toHaveLength(1);

    under[0]?.succeed();
    await settled();

    expect(under).toHaveLength(28);
  });

  test("tries the next one after a failure, still one at a time", async () => {
    const { under, ask } = gateWith(HANG_GUARD_MS, 2);
    ask(5);
    await settled();
    under[0]?.fail();
    await settled();

    expect(under).toHaveLength(2);
  });

  test("makes no more calls once several got no answer", async () => {
    const { under, ask, results } = gateWith(1, 2);
    ask(28);
    while (under.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(under).toHaveLength(2);

    for (const { fail } of under) fail();

    expect(await results()).toEqual(["failed", "failed", ...Array.from({ length: 26 }, () => 2)]);
  });

  test("opens when a late answer is a success", async () => {
    const { under, ask } = gateWith(1, 3);
    ask(2);
    while (under.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    under[0]?.succeed();
    await settled();
    ask(4);
    await settled();

    expect(under).toHaveLength(6);
  });

  test("one that fails after its patience is no longer counted as unanswered, and no call is let in twice for it", async () => {
    const { under, ask } = gateWith(1, 2);
    ask(4);
    while (under.length < 2) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Both are late by now, and no more are made.
    under[0]?.fail();
    await settled();
    ask(1);
    await settled();
    expect(under).toHaveLength(3);
  });

  test("an answer within the patience ends its clock: it does not count as unanswered later", async () => {
    const { under, ask } = gateWith(30, 1);
    ask(1);
    await settled();
    under[0]?.fail();
    await new Promise((resolve) => setTimeout(resolve, 60));
    ask(1);
    await settled();
    expect(under).toHaveLength(2);
  });

  test("once it is open, a failure does not close it", async () => {
    const { under, ask } = gateWith(HANG_GUARD_MS, 1);
    ask(1);
    await settled();
    under[0]?.succeed();
    await settled();
    ask(2);
    await settled();
    under[1]?.fail();
    await settled();
    ask(2);
    await settled();
    expect(under).toHaveLength(5);
  });
});
