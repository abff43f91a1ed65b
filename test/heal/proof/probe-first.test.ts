import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { probeFirst } from "../../../src/heal/proof/turns.ts";

const PATIENCE_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function probing(mostUnanswered: number) {
  const first = probeFirst({ patienceMs: PATIENCE_MS, mostUnanswered });
  const under: { succeed: () => void; fail: () => void }[] = [];
  const results: Promise<number | undefined | "failed">[] = [];
  const call = (): Promise<void> =>
    new Promise((resolve, reject) => under.push({ succeed: resolve, fail: () => reject(new Error("no")) }));
  return {
    under,
    ask: (count: number) => {
      for (let asked = 0; asked < count; asked += 1) results.push(first.run(call).catch(() => "failed" as const));
    },
    results: () => Promise.all(results),
  };
}

async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(0);
}

async function patienceIsOver(): Promise<void> {
  await vi.advanceTimersByTimeAsync(PATIENCE_MS);
}

describe("the first calls", () => {
  test("makes one call first, and all others once it succeeded", async () => {
    const { under, ask } = probing(2);
    ask(28);
    await settled();
    expect(under).toHaveLength(1);

    under[0]?.succeed();
    await settled();

    expect(under).toHaveLength(28);
  });

  test("tries the next call after a failure, still one at a time", async () => {
    const { under, ask } = probing(2);
    ask(5);
    await settled();
    under[0]?.fail();
    await settled();

    expect(under).toHaveLength(2);
  });

  test("makes no more calls after several timed out", async () => {
    const { under, ask, results } = probing(2);
    ask(28);
    await settled();
    await patienceIsOver();
    await patienceIsOver();
    expect(under).toHaveLength(2);

    for (const { fail } of under) fail();

    expect(await results()).toEqual(["failed", "failed", ...Array.from({ length: 26 }, () => 2)]);
  });

  test("opens when a late answer is a success", async () => {
    const { under, ask } = probing(3);
    ask(2);
    await settled();
    await patienceIsOver();
    under[0]?.succeed();
    await settled();
    ask(4);
    await settled();

    expect(under).toHaveLength(6);
  });

  test("a call that fails after the timeout is no longer counted as unanswered", async () => {
    const { under, ask } = probing(2);
    ask(4);
    await settled();
    await patienceIsOver();
    await patienceIsOver();
    // Both have timed out by now, and no more calls are made.
    under[0]?.fail();
    await settled();
    ask(1);
    await settled();
    expect(under).toHaveLength(3);
  });

  test("a call that fails after the timeout does not start a second call beside the in-flight one", async () => {
    const { under, ask } = probing(3);
    ask(4);
    await settled();
    await patienceIsOver();
    expect(under).toHaveLength(2);

    under[0]?.fail();
    await settled();

    expect(under).toHaveLength(2);
  });

  test("an answer in time does not cancel out a call without an answer", async () => {
    const { under, ask } = probing(1);
    ask(3);
    await settled();
    under[0]?.fail();
    await settled();
    await patienceIsOver();
    expect(under).toHaveLength(2);
  });

  test("a call answered in time does not count as unanswered later", async () => {
    const { under, ask } = probing(1);
    ask(1);
    await settled();
    under[0]?.fail();
    await settled();
    await patienceIsOver();
    ask(1);
    await settled();
    expect(under).toHaveLength(2);
  });

  test("calls without an answer do not close an open gate", async () => {
    const { under, ask } = probing(1);
    ask(1);
    await settled();
    under[0]?.succeed();
    await settled();
    ask(1);
    await settled();
    await patienceIsOver();
    ask(1);
    await settled();
    expect(under).toHaveLength(3);
  });

  test("a failure does not close an open gate", async () => {
    const { under, ask } = probing(1);
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
