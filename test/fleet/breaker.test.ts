import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BreakerState, CLOSED, countReports, decideBreaker, type NodeHealth } from "../../src/fleet/breaker.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const LIMITS = { breakerShare: 0.3, breakerLeast: 3 };
const OPEN: BreakerState = { open: true, message: "as it was", since: new Date(0) };

function minutesAgo(minutes: number): Date {
  return new Date(NOW.getTime() - minutes * 60_000);
}

function ill(turnedMinutesAgo: number, heartbeatMinutesAgo = 1): NodeHealth {
  return { ill: true, turnedAt: minutesAgo(turnedMinutesAgo), heartbeatAt: minutesAgo(heartbeatMinutesAgo) };
}

const WELL: NodeHealth = { ill: false, turnedAt: minutesAgo(9), heartbeatAt: minutesAgo(1) };

function fleet(size: number, unhealthy: number, turnedMinutesAgo = 2): readonly NodeHealth[] {
  return Array.from({ length: size }, (_, index) => (index < unhealthy ? ill(turnedMinutesAgo) : WELL));
}

describe("what counts", () => {
  test("nodes with a stale report do not, whatever it was", () => {
    expect(countReports([WELL, ill(2), ill(2, 16), { ...WELL, heartbeatAt: minutesAgo(600) }], NOW)).toEqual({
      reporting: 2,
      ill: 1,
      turnedIll: 1,
    });
  });

  test("nodes that have been ill for long are ill, and did not turn so now", () => {
    expect(countReports([ill(11), ill(9), WELL], NOW)).toEqual({ reporting: 3, ill: 2, turnedIll: 1 });
  });

  test("a node whose clock is a few minutes ahead still counts", () => {
    expect(countReports([ill(-3, -3)], NOW)).toEqual({ reporting: 1, ill: 1, turnedIll: 1 });
  });
});

describe.each<readonly [size: number, unhealthy: number, open: boolean]>([
  [0, 0, false],
  [1, 1, false],
  [3, 2, false],
  [3, 3, true],
  [10, 2, false],
  [10, 3, true],
  [10, 6, true],
  [1000, 299, false],
  [1000, 300, true],
  [1000, 1000, true],
])("of %i nodes %i become unhealthy at the same time", (size, unhealthy, open) => {
  test(open ? "it opens and says why" : "it stays closed", () => {
    const state = decideBreaker(CLOSED, countReports(fleet(size, unhealthy), NOW), LIMITS, NOW);

    expect(state.open).toBe(open);
    if (open) {
      expect(state.message).toContain(`${unhealthy} of ${size} nodes became unhealthy within 10 minutes`);
      expect(state.since).toEqual(NOW);
    } else expect(state).toEqual(CLOSED);
  });
});

test("nodes that fell ill one by one over days do not open it", () => {
  const reports = Array.from({ length: 10 }, (_, index) => ill(60 * (index + 1)));

  expect(decideBreaker(CLOSED, countReports(reports, NOW), LIMITS, NOW).open).toBe(false);
});

describe("once open", () => {
  test("it stays so, with the words of its beginning, while more than half as many are freshly ill", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 2), NOW), LIMITS, NOW)).toBe(OPEN);
  });

  test("it closes when less than half of the share is ill", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 1), NOW), LIMITS, NOW)).toEqual(CLOSED);
    expect(decideBreaker(OPEN, countReports(fleet(1000, 149), NOW), LIMITS, NOW)).toEqual(CLOSED);
  });

  test("it closes when no more nodes fell ill for a while, though they still are", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 10, 11), NOW), LIMITS, NOW)).toEqual(CLOSED);
  });

  test("it closes when no node reports any more", () => {
    expect(decideBreaker(OPEN, countReports([], NOW), LIMITS, NOW)).toEqual(CLOSED);
  });
});

describe("for every fleet and every threshold", () => {
  const counts = fc
    .tuple(fc.nat(2000), fc.nat(2000), fc.nat(2000))
    .map((numbers) => numbers.toSorted((one, other) => other - one))
    .map(([reporting = 0, unhealthy = 0, turnedIll = 0]) => ({ reporting, ill: unhealthy, turnedIll }));
  const limits = fc.record({
    breakerShare: fc.double({ min: 0.01, max: 1, noNaN: true }),
    breakerLeast: fc.integer({ min: 1, max: 50 }),
  });

  test("what opens it also keeps it open", () => {
    fc.assert(
      fc.property(counts, limits, (now, limit) => {
        fc.pre(decideBreaker(CLOSED, now, limit, NOW).open);
        expect(decideBreaker(OPEN, now, limit, NOW).open).toBe(true);
      }),
    );
  });

  test("it never opens for fewer than the least number, nor for less than the share", () => {
    fc.assert(
      fc.property(counts, limits, (now, limit) => {
        fc.pre(decideBreaker(CLOSED, now, limit, NOW).open);
        expect(now.turnedIll).toBeGreaterThanOrEqual(limit.breakerLeast);
        expect(now.turnedIll / now.reporting).toBeGreaterThanOrEqual(limit.breakerShare);
      }),
    );
  });

  test("it always closes in a fleet that is well", () => {
    fc.assert(
      fc.property(counts, limits, ({ reporting }, limit) => {
        expect(decideBreaker(OPEN, { reporting, ill: 0, turnedIll: 0 }, limit, NOW)).toEqual(CLOSED);
      }),
    );
  });
});
