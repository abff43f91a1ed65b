import { afterEach, describe, expect, test, vi } from "vitest";
import { publishBackOff, watchBackOffMs } from "../../src/kube/back-off.ts";

afterEach(() => vi.restoreAllMocks());

test.each([
  ["at least", 0, [250, 500, 1000, 2000, 4000, 8000, 15_000, 15_000]],
  ["at most", 0.9999999, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]],
])("a server is left alone for %s this long after each failure in a row", (_, chance, waits) => {
  vi.spyOn(Math, "random").mockReturnValue(chance);

  expect(waits.map((_wait, failures) => Math.round(watchBackOffMs(failures)))).toEqual(waits);
  expect(Math.round(watchBackOffMs(1000))).toBe(waits.at(-1));
});

test("clients that failed together do not come back together", () => {
  expect(new Set(Array.from({ length: 20 }, () => watchBackOffMs(3))).size).toBeGreaterThan(1);
});

test("a Retry-After is waited for in full before the back-off", () => {
  vi.spyOn(Math, "random").mockReturnValue(0);
  expect(watchBackOffMs(0, { kind: "busy", retryAfterSeconds: 7 })).toBe(7250);
});

describe("what is published", () => {
  const busy = { kind: "busy", retryAfterSeconds: 0 } as const;
  const forbidden = { kind: "forbidden", retryAfterSeconds: 0 } as const;

  test("waits longer after each failure in a row, and not at all after a success", () => {
    const backOff = publishBackOff(() => 0);

    expect([busy, busy, undefined, busy].map(backOff)).toEqual([5000, 10_000, 0, 5000]);
    expect(Array.from({ length: 20 }, () => backOff(busy)).at(-1)).toBe(300_000);
    expect(publishBackOff(() => 0)({ ...busy, retryAfterSeconds: 60 })).toBe(65_000);
  });

  test("waits much longer where it is forbidden time after time, and not for a server that has just started", () => {
    const backOff = publishBackOff(() => 0);
    const afterOutage = [busy, busy, busy, busy, forbidden, forbidden, forbidden, forbidden, forbidden].map(backOff);

    expect(afterOutage.slice(4)).toEqual([5000, 10_000, 20_000, 30 * 60_000, 30 * 60_000]);
    expect([undefined, forbidden].map(backOff)).toEqual([0, 5000]);
  });
});
