import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { until } from "../../lab/poll.ts";
import { writebackQueue } from "../../src/durable/sync-entries.ts";

/** Only a hang guard. */
const GUARD_MS = 30_000;

function recordingQueue(first: Promise<void>) {
  const started: string[][] = [];
  let directories = 0;
  const queue = writebackQueue(
    () => {
      directories += 1;
    },
    async (dir, names) => {
      const list = [...names];
      started.push(list.map((name) => `${dir}/${name}`));
      if (started.length === 1) await first;
      return { hasDirectories: list.includes("directory") };
    },
  );
  onTestFinished(() => queue.close());
  const hasStarted = (count: number) => until(`${count} started`, GUARD_MS, () => started.length >= count || undefined);
  return { queue, started, hasStarted, directories: () => directories };
}

describe("writebackQueue", () => {
  test("starts each noticed file once, and files noticed meanwhile afterwards", async () => {
    const first = Promise.withResolvers<void>();
    const { queue, started, hasStarted } = recordingQueue(first.promise);

    for (const name of ["a", "a", "b"]) queue.notice("/results", name);
    await hasStarted(1);
    queue.notice("/results", "a");
    queue.notice("/networks", "c");
    first.resolve();
    await hasStarted(3);

    expect(started).toEqual([["/results/a", "/results/b"], ["/results/a"], ["/networks/c"]]);
  });

  test("pauses three times as long as the disk took for a batch", async () => {
    const waits: number[] = [];
    const slowMs = 50;
    const queue = writebackQueue(
      () => undefined,
      async () => {
        if (waits.length === 1) queue.notice("/results", "second");
        await sleep(slowMs);
        return { hasDirectories: false };
      },
      async (milliseconds) => {
        waits.push(milliseconds);
      },
    );

    queue.notice("/results", "first");
    await until("the second batch", GUARD_MS, () => waits.length === 2 || undefined);

    expect(waits[1]).toBeGreaterThanOrEqual(3 * (slowMs - 1));
  });

  test("reports when a directory was among them", async () => {
    const { queue, directories } = recordingQueue(Promise.resolve());

    queue.notice("/networks", "directory");

    await until("it is reported", GUARD_MS, () => directories() === 1 || undefined);
  });

  test("has a limit while the disk hangs", async () => {
    const first = Promise.withResolvers<void>();
    const { queue, started, hasStarted } = recordingQueue(first.promise);
    queue.notice("/results", "first");
    await hasStarted(1);

    for (let count = 0; count < 5000; count++) queue.notice("/results", `${count}`);
    first.resolve();
    await hasStarted(2);

    expect(started[1]).toHaveLength(1024);
  });
});
