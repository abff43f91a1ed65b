import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { pool } from "../../src/heal/pool.ts";

const PATIENCE_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Jobs that end when they are told to, and remember which of them have begun. */
function handmade(count: number) {
  const begun: number[] = [];
  const ends: ((value: string) => void)[] = [];
  const jobs = Array.from({ length: count }, (_, index) => () => {
    begun.push(index);
    return new Promise<string>((resolve) => {
      ends[index] = resolve;
    });
  });
  return {
    begun,
    jobs,
    end: async (...indexes: readonly number[]): Promise<void> => {
      for (const index of indexes) ends[index]?.(`job ${index}`);
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

function poolOf(places: number, mostBeside = 32) {
  return pool({ places, patienceMs: PATIENCE_MS, mostBeside });
}

describe("a pool", () => {
  test("begins no more jobs than it has places, in their order", async () => {
    const { begun, jobs, end } = handmade(4);
    void poolOf(2).run(jobs);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toEqual([0, 1]);
    await end(1);
    expect(begun).toEqual([0, 1, 2]);
    await end(0, 2);
    expect(begun).toEqual([0, 1, 2, 3]);
  });

  test("gives results in the order of the jobs, whichever ends first", async () => {
    const { jobs, end } = handmade(3);
    const all = poolOf(3).run(jobs);
    await vi.advanceTimersByTimeAsync(0);
    await end(2, 0, 1);
    expect(await all).toEqual(["job 0", "job 1", "job 2"]);
  });

  test("gives the place of a job that hangs to the next", async () => {
    const { begun, jobs, end } = handmade(3);
    const all = poolOf(1).run(jobs);
    await vi.advanceTimersByTimeAsync(PATIENCE_MS - 1);
    expect(begun).toEqual([0]);
    await vi.advanceTimersByTimeAsync(1);
    expect(begun).toEqual([0, 1]);
    await end(1);
    expect(begun).toEqual([0, 1, 2]);
    await end(2, 0);
    expect(await all).toEqual(["job 0", "job 1", "job 2"]);
  });

  test("lets only so many hang beside the others, and the next one when one of them ends", async () => {
    const { begun, jobs, end } = handmade(4);
    void poolOf(1, 1).run(jobs);
    await vi.advanceTimersByTimeAsync(10 * PATIENCE_MS);
    expect(begun).toEqual([0, 1]);
    await end(0);
    expect(begun).toEqual([0, 1, 2]);
  });

  test("forgets a job that ended while it was waiting to step aside", async () => {
    const { begun, jobs, end } = handmade(5);
    void poolOf(1, 1).run(jobs);
    await vi.advanceTimersByTimeAsync(10 * PATIENCE_MS);
    await end(1);
    expect(begun).toEqual([0, 1, 2]);
    await end(0);
    // Job 2 alone is under way, and holds the only place until its patience is over.
    expect(begun).toEqual([0, 1, 2]);
    await vi.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(begun).toEqual([0, 1, 2, 3]);
  });

  test("begins with fewer places than it has, and gets to all of them one by one", async () => {
    const { begun, jobs } = handmade(6);
    const workers = pool({ places: 4, firstPlaces: 2, patienceMs: PATIENCE_MS, mostBeside: 32 });
    void workers.run(jobs);
    await vi.advanceTimersByTimeAsync(0);
    expect(begun).toHaveLength(2);
    for (const expected of [3, 4, 4]) {
      workers.speedUp();
      await vi.advanceTimersByTimeAsync(0);
      expect(begun).toHaveLength(expected);
    }
  });

  test("halves its places when told to slow down, but keeps one, and gets them back one by one", async () => {
    const { begun, jobs, end } = handmade(12);
    const workers = poolOf(4);
    void workers.run(jobs);
    await vi.advanceTimersByTimeAsync(0);
    workers.slowDown();
    await end(0, 1);
    expect(begun).toHaveLength(4);
    await end(2);
    expect(begun).toHaveLength(5);
    workers.slowDown();
    workers.slowDown();
    await end(3, 4);
    expect(begun).toHaveLength(6);
    workers.speedUp();
    await end();
    expect(begun).toHaveLength(7);
    for (let times = 0; times < 10; times++) workers.speedUp();
    await end();
    expect(begun).toHaveLength(9);
  });

  test("passes a failure on, and frees the place", async () => {
    const workers = poolOf(1);
    await expect(workers.one(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await workers.one(() => Promise.resolve("yes"))).toBe("yes");
  });
});
