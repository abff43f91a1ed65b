import fc from "fast-check";
import { expect, test } from "vitest";
import { backOffMs } from "../../src/kube/back-off.ts";

test("a server is left alone for longer each time, never for ever, and never by all clients at the same moment", () => {
  fc.assert(
    fc.property(fc.nat({ max: 1000 }), (failures) => {
      const waits = Array.from({ length: 20 }, () => backOffMs(failures));

      expect(Math.min(...waits)).toBeGreaterThan(0);
      expect(Math.max(...waits)).toBeLessThanOrEqual(30_000);
      expect(new Set(waits).size).toBeGreaterThan(1);
      // Even the shortest is as long as the longest of two failures before, until the most is reached.
      if (failures >= 2) expect(Math.min(...waits)).toBeGreaterThanOrEqual(Math.min(500 * 2 ** (failures - 2), 15_000));
    }),
  );
});

test("a server that says how long is left alone for at least that long", () => {
  expect(backOffMs(0, 7)).toBeGreaterThan(7000);
});
