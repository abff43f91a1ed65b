import { afterEach, describe, expect, test, vi } from "vitest";
import { pause, pollUntil } from "../../src/host/poll.ts";

/** Probes answer in order, the last one again and again; sleeping is recorded and takes no time. */
function polled(answers: readonly (string | undefined)[]) {
  const slept: number[] = [];
  let probes = 0;
  return {
    slept,
    probes: () => probes,
    probe: () => Promise.resolve(answers[Math.min(probes++, answers.length - 1)]),
    sleep: (milliseconds: number) => Promise.resolve(void slept.push(milliseconds)),
  };
}

afterEach(() => vi.useRealTimers());

describe("a pause", () => {
  test("takes its time, and ends early and without an error when it is aborted", async () => {
    const stop = new AbortController();
    const ended: string[] = [];
    const long = pause(3_600_000, stop.signal).then(() => ended.push("long"));

    await pause(1).then(() => ended.push("short"));
    stop.abort();
    await long;

    expect(ended).toEqual(["short", "long"]);
  });

  test("keeps no process alive", async () => {
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
    const stop = new AbortController();
    const before = timers();
    const paused = pause(3_600_000, stop.signal);

    expect(timers()).toBe(before);

    stop.abort();
    await paused;
  });
});

describe("polling", () => {
  test("ends with the first value, and sleeps between probes only", async () => {
    const { probe, sleep, slept, probes } = polled([undefined, undefined, "up", "later"]);

    expect(await pollUntil(probe, { everyMs: 7, timeoutMs: 60_000, sleep })).toBe("up");

    expect([probes(), slept]).toEqual([3, [7, 7]]);
  });

  test("ends without a value after its timeout", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { probe, probes } = polled([undefined]);
    const sleep = (milliseconds: number) => Promise.resolve(vi.advanceTimersByTime(milliseconds));

    expect(await pollUntil(probe, { everyMs: 10, timeoutMs: 35, sleep })).toBeUndefined();

    expect(probes()).toBe(4);
  });

  test.each([
    ["without time", { timeoutMs: 0 }],
    ["already stopped", { timeoutMs: 60_000, stop: AbortSignal.abort() }],
  ])("%s does not probe", async (_what, limits) => {
    const { probe, sleep, probes } = polled(["up"]);

    expect(await pollUntil(probe, { everyMs: 1, sleep, ...limits })).toBeUndefined();

    expect(probes()).toBe(0);
  });

  test("ends when it is stopped", async () => {
    const stop = new AbortController();
    const { probe, probes } = polled([undefined]);
    const sleep = () => Promise.resolve(stop.abort());

    expect(await pollUntil(probe, { everyMs: 1, timeoutMs: 60_000, stop: stop.signal, sleep })).toBeUndefined();

    expect(probes()).toBe(1);
  });
});
