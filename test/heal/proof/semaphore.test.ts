import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { semaphore } from "../../../src/heal/proof/turns.ts";

const PATIENCE_MS = 1000;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

/** Jobs that end on demand, with the list of those that have started. */
function manualJobs(count: number) {
  const started: number[] = [];
  const ends: ((value: string) => void)[] = [];
  const jobs = Array.from({ length: count }, (_, index) => () => {
    started.push(index);
    return new Promise<string>((resolve) => {
      ends[index] = resolve;
    });
  });
  return {
    started,
    jobs,
    end: async (...indexes: readonly number[]): Promise<void> => {
      for (const index of indexes) ends[index]?.(`job ${index}`);
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

async function run(slots: number, jobs: readonly (() => Promise<string>)[], mostAside = 32): Promise<string[]> {
  const limited = semaphore({ slots, patienceMs: PATIENCE_MS, mostAside });
  return await Promise.all(jobs.map((job) => limited.run(job)));
}

describe("semaphore", () => {
  test("starts no more jobs than it has slots, in their order", async () => {
    const { started, jobs, end } = manualJobs(4);
    void run(2, jobs);
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toEqual([0, 1]);
    await end(1);
    expect(started).toEqual([0, 1, 2]);
    await end(0, 2);
    expect(started).toEqual([0, 1, 2, 3]);
  });

  test("returns the result of each job, in any order of completion", async () => {
    const { jobs, end } = manualJobs(3);
    const all = run(3, jobs);
    await vi.advanceTimersByTimeAsync(0);
    await end(2, 0, 1);
    expect(await all).toEqual(["job 0", "job 1", "job 2"]);
  });

  test("gives the slot of a hung job to the next", async () => {
    const { started, jobs, end } = manualJobs(3);
    const all = run(1, jobs);
    await vi.advanceTimersByTimeAsync(PATIENCE_MS - 1);
    expect(started).toEqual([0]);
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual([0, 1]);
    await end(1);
    expect(started).toEqual([0, 1, 2]);
    await end(2, 0);
    expect(await all).toEqual(["job 0", "job 1", "job 2"]);
  });

  test("limits the hung jobs that give up their slot; the next one does so when one of them ends", async () => {
    const { started, jobs, end } = manualJobs(4);
    void run(1, jobs, 1);
    await vi.advanceTimersByTimeAsync(10 * PATIENCE_MS);
    expect(started).toEqual([0, 1]);
    await end(0);
    expect(started).toEqual([0, 1, 2]);
  });

  test("drops a job that ended while it was waiting to give up its slot", async () => {
    const { started, jobs, end } = manualJobs(5);
    void run(1, jobs, 1);
    await vi.advanceTimersByTimeAsync(10 * PATIENCE_MS);
    await end(1);
    expect(started).toEqual([0, 1, 2]);
    await end(0);
    // Only job 2 is running, and holds the only slot until its timeout.
    expect(started).toEqual([0, 1, 2]);
    await vi.advanceTimersByTimeAsync(PATIENCE_MS);
    expect(started).toEqual([0, 1, 2, 3]);
  });

  test("a job that has ended does not give up its slot later", async () => {
    const { started, jobs, end } = manualJobs(3);
    const limited = semaphore({ slots: 1, patienceMs: PATIENCE_MS, mostAside: 32 });
    const [first, ...others] = jobs.map((job) => () => limited.run(job));
    void first?.();
    await vi.advanceTimersByTimeAsync(0);
    await end(0);
    await vi.advanceTimersByTimeAsync(PATIENCE_MS);
    for (const start of others) void start();
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toEqual([0, 1]);
  });

  test("rejects with the error of the job, and frees the slot", async () => {
    const slots = semaphore({ slots: 1, patienceMs: PATIENCE_MS, mostAside: 32 });
    await expect(slots.run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await slots.run(() => Promise.resolve("yes"))).toBe("yes");
  });
});
