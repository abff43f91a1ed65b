import { afterEach, describe, expect, test, vi } from "vitest";
import { publishBackOff, watchBackOffMs } from "../../src/kube/errors.ts";

afterEach(() => vi.restoreAllMocks());

test.each([
  ["at least", 0, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]],
  ["at most", 0.9999999, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]],
])("the back-off after consecutive failures is %s", (_, chance, waits) => {
  vi.spyOn(Math, "random").mockReturnValue(chance);

  expect(waits.map((_wait, failures) => Math.round(watchBackOffMs(failures)))).toEqual(waits);
  expect(Math.round(watchBackOffMs(1000))).toBe(waits.at(-1));
});

test("adds jitter, so that clients do not retry at the same time", () => {
  expect(new Set(Array.from({ length: 20 }, () => watchBackOffMs(3))).size).toBeGreaterThan(1);
});

test("waits for Retry-After in full before the back-off", () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  expect(watchBackOffMs(0, { kind: "busy", retryAfterSeconds: 7 })).toBe(7250);
});

describe("back-off of publishing", () => {
  const busy = { kind: "busy", retryAfterSeconds: 0 } as const;
  const forbidden = { kind: "forbidden", retryAfterSeconds: 0 } as const;

  test("grows with each consecutive failure, and is reset by a success", () => {
    const backOff = publishBackOff(() => 0);

    expect([busy, busy, undefined, busy].map(backOff)).toEqual([5000, 10_000, 0, 5000]);
    expect(Array.from({ length: 20 }, () => backOff(busy)).at(-1)).toBe(300_000);
    expect(publishBackOff(() => 0)({ ...busy, retryAfterSeconds: 60 })).toBe(65_000);
  });

  test("is much longer after repeated 403 answers, but not for a server that has just started", () => {
    const backOff = publishBackOff(() => 0);
    const afterOutage = [busy, busy, busy, busy, forbidden, forbidden, forbidden, forbidden, forbidden].map(backOff);

    expect(afterOutage.slice(4)).toEqual([5000, 10_000, 20_000, 30 * 60_000, 30 * 60_000]);
    expect([undefined, forbidden].map(backOff)).toEqual([0, 5000]);
  });
});
