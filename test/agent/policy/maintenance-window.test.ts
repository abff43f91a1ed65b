import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type MaintenanceWindow, untilWindowMs } from "../../../src/agent/policy/agent-policy.ts";

const NIGHTS: MaintenanceWindow = { days: [], fromMinute: 22 * 60, toMinute: 6 * 60, timeZone: "Europe/Berlin" };
const MONDAYS: MaintenanceWindow = { days: [1], fromMinute: 9 * 60, toMinute: 17 * 60, timeZone: "America/New_York" };
const SUNDAY_NIGHT: MaintenanceWindow = { ...NIGHTS, days: [0] };
const HOUR_MS = 3_600_000;

function minutesUntil(window: MaintenanceWindow, now: string): number {
  return untilWindowMs([window], new Date(now)) / 60_000;
}

test("without windows healing is always allowed", () => {
  expect(untilWindowMs([], new Date())).toBe(0);
});

describe("a window", () => {
  test.each([
    ["is open from its first minute", NIGHTS, "2026-01-10T21:00:00Z", 0],
    ["is closed the minute before", NIGHTS, "2026-01-10T20:59:00Z", 1],
    ["continues across midnight", NIGHTS, "2026-01-11T04:59:59Z", 0],
    ["is closed from its last minute on", NIGHTS, "2026-01-11T05:00:00Z", 16 * 60],
    ["keeps the time of its zone in summer", NIGHTS, "2026-07-10T20:00:00Z", 0],
    ["is closed in summer when it was open in winter", NIGHTS, "2026-07-11T04:30:00Z", 15 * 60 + 30],
    ["is open on its day", MONDAYS, "2026-01-12T14:00:00Z", 0],
    ["waits for its day", MONDAYS, "2026-01-13T14:00:00Z", 6 * 24 * 60],
    ["belongs after midnight to the day on which it opened", SUNDAY_NIGHT, "2026-01-12T02:00:00Z", 0],
    ["is not open in the early hours of its own day", SUNDAY_NIGHT, "2026-01-11T02:00:00Z", 19 * 60],
  ] satisfies readonly (readonly [string, MaintenanceWindow, string, number])[])("%s", (_, window, now, minutes) => {
    expect(minutesUntil(window, now)).toBe(minutes);
  });

  test("counts seconds", () => {
    expect(untilWindowMs([NIGHTS], new Date("2026-01-10T20:59:30Z"))).toBe(30_000);
  });

  test("the nearest of several counts", () => {
    expect(untilWindowMs([MONDAYS, NIGHTS], new Date("2026-01-10T20:00:00Z"))).toBe(HOUR_MS);
  });
});

describe("daylight saving changes", () => {
  const early = (fromMinute: number, toMinute: number): MaintenanceWindow => ({ ...NIGHTS, fromMinute, toMinute });

  // On 29 March 2026 Berlin's clocks go from 02:00 to 03:00 at 01:00 UTC.
  test("a window within the skipped hour does not open that night", () => {
    const window = early(130, 160);
    const opens = new Date(
      Date.parse("2026-03-29T00:30:00Z") + untilWindowMs([window], new Date("2026-03-29T00:30:00Z")),
    );

    expect(opens.toISOString()).toBe("2026-03-30T00:10:00.000Z");
  });

  test("a window that starts in the skipped hour opens in the hour after it", () => {
    expect(minutesUntil(early(150, 240), "2026-03-29T01:00:00Z")).toBe(0);
  });

  // On 25 October 2026 Berlin's clocks go from 03:00 back to 02:00 at 01:00 UTC.
  test("a window in the repeated hour is open both times", () => {
    const window = early(130, 160);

    expect([minutesUntil(window, "2026-10-25T00:20:00Z"), minutesUntil(window, "2026-10-25T01:20:00Z")]).toEqual([
      0, 0,
    ]);
  });
});

const anyWindow = fc.record({
  days: fc.uniqueArray(fc.integer({ min: 0, max: 6 })),
  fromMinute: fc.integer({ min: 0, max: 1439 }),
  toMinute: fc.integer({ min: 1, max: 1440 }),
  timeZone: fc.constantFrom(
    "UTC",
    "Europe/Berlin",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Australia/Lord_Howe",
  ),
});
const anyTime = fc.date({ min: new Date("2024-01-01"), max: new Date("2028-01-01"), noInvalidDate: true });

test("is open at its predicted opening time, for every zone and every day", () => {
  fc.assert(
    fc.property(anyWindow, anyTime, (window, now) => {
      const wait = untilWindowMs([window], now);

      expect(wait).toBeGreaterThanOrEqual(0);
      expect(wait).toBeLessThanOrEqual(15 * 24 * HOUR_MS);
      expect(untilWindowMs([window], new Date(now.getTime() + wait))).toBe(0);
    }),
  );
});
