import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openPace, type Pace } from "../../src/agent/pace.ts";

const EVERY_MS = 60_000;

const FAKED = ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"] as const;

beforeEach(() => vi.useFakeTimers({ toFake: [...FAKED] }));
afterEach(() => vi.useRealTimers());

/** Scans until stopped, each scan at this cost of CPU time; returns the times of all scans. */
function scanning(of: Pace, costMs = 0): { readonly at: number[]; readonly stop: AbortController } {
  const at: number[] = [];
  const stop = new AbortController();
  void (async () => {
    for (;;) {
      await of.wait(stop.signal);
      if (stop.signal.aborted) return;
      at.push(performance.now());
      of.scanned(costMs);
    }
  })();
  return { at, stop };
}

function pace(random = 0.5): Pace {
  return openPace({ scanEveryMs: EVERY_MS, random: () => random });
}

async function pass(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds);
}

describe("pace", () => {
  test("scans immediately, and then at the configured interval", async () => {
    const { at } = scanning(pace());

    await pass(3 * EVERY_MS);

    expect(at).toHaveLength(4);
    expect((at[3] ?? 0) - (at[0] ?? 0)).toBeCloseTo(3 * EVERY_MS);
  });

  test.each([
    [0, 0.8],
    [0.999, 1.2],
  ])("jitters the scans of many nodes: random %s makes it %s times the interval", async (random, times) => {
    const { at } = scanning(pace(random));

    await pass(2 * EVERY_MS);

    expect(((at[1] ?? 0) - (at[0] ?? 0)) / EVERY_MS).toBeCloseTo(times, 2);
  });

  test("many hints at the same time cause one scan, shortly after the first", async () => {
    const hinted = pace();
    const { at } = scanning(hinted);
    await pass(10_000);

    for (let count = 0; count < 100; count++) hinted.hint();
    await pass(1000);

    expect(at).toHaveLength(2);
  });

  test("an urgent hint causes a scan without delay, even while another hint waits", async () => {
    const hinted = pace();
    const { at } = scanning(hinted);
    await pass(10_000);

    hinted.hint();
    hinted.hint("now");
    await pass(0);

    expect(at).toHaveLength(2);
  });

  test("a flood of hints uses less than 5 % of a CPU, however long it lasts, and is still answered", async () => {
    const hinted = pace();
    const costMs = 50;
    const { at } = scanning(hinted, costMs);
    const flood = setInterval(() => hinted.hint("now"), 10);

    for (let minute = 0; minute < 20; minute++) await pass(60_000);
    clearInterval(flood);
    const share = (at.length * costMs) / (20 * 60_000);

    expect(share).toBeGreaterThan(0.02);
    expect(share).toBeLessThan(0.05);
  });

  test("after a quiet time several hints in a row are answered at once", async () => {
    const hinted = pace();
    const { at } = scanning(hinted, 50);
    await pass(50_000);
    const before = at.length;

    for (let count = 0; count < 10; count++) {
      hinted.hint("now");
      await pass(1);
    }

    expect(at.length - before).toBe(10);
  });

  test("scans when something becomes due, the earliest first", async () => {
    const waiting = pace();
    const { at } = scanning(waiting);
    await pass(1);
    const startedAt = performance.now();

    waiting.dueAt(startedAt + 9000);
    waiting.dueAt(startedAt + 3000);
    await pass(5000);

    expect(at.map((ms) => Math.round(ms - startedAt))).toContain(3000);
    expect(at).toHaveLength(2);
  });

  test("the back-off doubles after each failure up to a minute, and a success resets it", async () => {
    const failing = pace();
    const at: number[] = [];
    const stop = new AbortController();
    let succeeds = false;
    void (async () => {
      for (;;) {
        await failing.wait(stop.signal);
        if (stop.signal.aborted) return;
        at.push(performance.now());
        if (succeeds) failing.scanned(0);
        else failing.failed();
        succeeds = false;
      }
    })();
    const gapsFrom = (first: number) => at.slice(first + 1).map((ms, index) => ms - (at[first + index] ?? 0));

    await pass(10 * 60_000);
    expect(gapsFrom(0).slice(0, 8)).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);

    succeeds = true;
    await pass(5 * 60_000);
    const success = gapsFrom(0).findIndex((gap, index) => index > 8 && gap < 60_000);
    expect(gapsFrom(success).slice(0, 3)).toEqual([1000, 2000, 4000]);
    stop.abort();
  });

  test("a shorter interval applies at once", async () => {
    const changed = pace();
    const { at } = scanning(changed);
    await pass(1);

    changed.scanEvery(1000);
    await pass(10_500);

    expect(at).toHaveLength(11);
  });

  test("ends its wait when it is stopped", async () => {
    const stopped = pace();
    const { stop, at } = scanning(stopped);
    await pass(1);

    stop.abort();
    await pass(10 * EVERY_MS);

    expect(at).toHaveLength(1);
  });
});
