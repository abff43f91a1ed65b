import { afterEach, expect, test, vi } from "vitest";
import { publishBackOffMs, watchBackOffMs } from "../../src/kube/back-off.ts";

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

test("what is published waits longer, and where it is forbidden much longer", () => {
  const busy = { kind: "busy", retryAfterSeconds: 0 } as const;
  expect([1, 2, 20].map((failures) => publishBackOffMs(failures, busy, () => 0))).toEqual([5000, 10_000, 300_000]);
  expect(publishBackOffMs(1, { ...busy, retryAfterSeconds: 60 }, () => 0)).toBe(65_000);
  expect(publishBackOffMs(1, { ...busy, kind: "forbidden" }, () => 0)).toBe(30 * 60_000);
});
