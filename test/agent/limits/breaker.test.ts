import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CLOSED, countReports, decideBreaker, type NodeHealth } from "../../../src/agent/limits/breaker.ts";
import type { BreakerState } from "../../../src/agent/state/state.ts";

const NOW = new Date("2026-03-01T12:00:00Z");
const LIMITS = { breakerShare: 0.3, breakerLeast: 3 };
const OPEN: BreakerState = { open: true, message: "as it was", since: new Date(0) };

function minutesAgo(minutes: number): Date {
  return new Date(NOW.getTime() - minutes * 60_000);
}

function turned(turnedMinutesAgo: number, heartbeatMinutesAgo = 1): NodeHealth {
  return { status: "True", turnedAt: minutesAgo(turnedMinutesAgo), heartbeatAt: minutesAgo(heartbeatMinutesAgo) };
}

const WELL: NodeHealth = { status: "False", turnedAt: minutesAgo(9), heartbeatAt: minutesAgo(1) };

function fleet(size: number, howMany: number, turnedMinutesAgo = 2): readonly NodeHealth[] {
  return Array.from({ length: size }, (_, index) => (index < howMany ? turned(turnedMinutesAgo) : WELL));
}

describe("breaker input", () => {
  test("ignores nodes with a stale report", () => {
    expect(countReports([WELL, turned(2), turned(2, 16), { ...WELL, heartbeatAt: minutesAgo(600) }], NOW)).toEqual({
      reporting: 2,
      turnedUnhealthy: 1,
    });
  });

  test("counts long unhealthy nodes as unhealthy, but not as newly unhealthy", () => {
    expect(countReports([turned(11), turned(9), WELL], NOW)).toEqual({ reporting: 3, turnedUnhealthy: 1 });
  });

  test("counts a node whose clock is a few minutes ahead", () => {
    expect(countReports([turned(-3, -3)], NOW)).toEqual({ reporting: 1, turnedUnhealthy: 1 });
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

test("does not open for nodes that became unhealthy one by one over days", () => {
  const reports = Array.from({ length: 10 }, (_, index) => turned(60 * (index + 1)));

  expect(decideBreaker(CLOSED, countReports(reports, NOW), LIMITS, NOW).open).toBe(false);
});

describe("a number of nodes", () => {
  const limits = { ...LIMITS, breakerNodes: 20 };
  const decide = (before: BreakerState, howMany: number) =>
    decideBreaker(before, countReports(fleet(1000, howMany), NOW), limits, NOW).open;

  test("opens the breaker although the share is small, and keeps it open until half of it", () => {
    expect([decide(CLOSED, 19), decide(CLOSED, 20)]).toEqual([false, true]);
    expect([decide(OPEN, 10), decide(OPEN, 9)]).toEqual([true, false]);
  });

  test("does not replace the share", () => {
    expect(decideBreaker(CLOSED, countReports(fleet(10, 3), NOW), limits, NOW).open).toBe(true);
  });
});

describe("an open breaker", () => {
  test("stays open with its first message while more than half as many are newly unhealthy", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 2), NOW), LIMITS, NOW)).toBe(OPEN);
  });

  test("closes when less than half of the share is unhealthy", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 1), NOW), LIMITS, NOW)).toEqual(CLOSED);
    expect(decideBreaker(OPEN, countReports(fleet(1000, 149), NOW), LIMITS, NOW)).toEqual(CLOSED);
  });

  test("closes when no more nodes became unhealthy for a while, although they still are", () => {
    expect(decideBreaker(OPEN, countReports(fleet(10, 10, 11), NOW), LIMITS, NOW)).toEqual(CLOSED);
  });

  test("closes when no node reports any more", () => {
    expect(decideBreaker(OPEN, countReports([], NOW), LIMITS, NOW)).toEqual(CLOSED);
  });
});

describe("for every fleet and every threshold", () => {
  const counts = fc
    .tuple(fc.nat(2000), fc.nat(2000))
    .map((numbers) => numbers.toSorted((one, other) => other - one))
    .map(([reporting = 0, turnedUnhealthy = 0]) => ({ reporting, turnedUnhealthy }));
  const limits = fc.record({
    breakerShare: fc.double({ min: 0.01, max: 1, noNaN: true }),
    breakerLeast: fc.integer({ min: 1, max: 50 }),
  });

  test("a breaker that opens also stays open for the same input", () => {
    fc.assert(
      fc.property(counts, limits, (now, limit) => {
        fc.pre(decideBreaker(CLOSED, now, limit, NOW).open);
        expect(decideBreaker(OPEN, now, limit, NOW).open).toBe(true);
      }),
    );
  });

  test("it never opens for fewer than the minimum number, nor for less than the share", () => {
    fc.assert(
      fc.property(counts, limits, (now, limit) => {
        fc.pre(decideBreaker(CLOSED, now, limit, NOW).open);
        expect(now.turnedUnhealthy).toBeGreaterThanOrEqual(limit.breakerLeast);
        expect(now.turnedUnhealthy / now.reporting).toBeGreaterThanOrEqual(limit.breakerShare);
      }),
    );
  });

  test("it always closes in a healthy fleet", () => {
    fc.assert(
      fc.property(counts, limits, ({ reporting }, limit) => {
        expect(decideBreaker(OPEN, { reporting, turnedUnhealthy: 0 }, limit, NOW)).toEqual(CLOSED);
      }),
    );
  });
});
