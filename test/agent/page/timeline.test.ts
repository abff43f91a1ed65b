import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chartOf,
  DAY_S,
  dayInWords,
  hourLines,
  LANES,
  minuteInWords,
  pointsOf,
  rangeInWords,
} from "../../../src/agent/page/timeline.ts";
import { runsOf } from "../../../src/agent/state/state-json.ts";
import { eventfulDay, point } from "./agent-states.ts";

const HOUR = 1_800_000_000 - (1_800_000_000 % 3600);

test("the heading is how far back the chart goes", () => {
  const at = (secondsAgo: number) => [point(HOUR - secondsAgo)];

  expect(rangeInWords([], HOUR)).toBe("Last 10m");
  expect(rangeInWords(at(1800), HOUR)).toBe("Last 30m");
  expect(rangeInWords(at(DAY_S), HOUR)).toBe("Last 24 hours");
});

describe("timeline in stretches", () => {
  const few = fc.integer({ min: 0, max: 2 });
  const rarely = fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, few);
  const happened = fc.record({
    ghosts: few,
    unknown: fc.constantFrom({}, { unknown: true as const }),
    healed: rarely,
    failed: rarely,
    crashRestarts: rarely,
    kernelStalls: rarely,
  });
  type Happened = typeof happened extends fc.Arbitrary<infer Value> ? Value : never;
  const pointWith = (minute: number, { unknown = {}, ...events }: Partial<Happened> = {}) =>
    point(minute, { ...events, ...unknown });
  const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { maxLength: 100 });
  const timeline = minutes.chain((when) =>
    fc
      .array(happened, { minLength: when.length, maxLength: when.length })
      .map((events) => when.toSorted((a, b) => a - b).map((minute, index) => pointWith(minute * 60, events[index]))),
  );

  test("restores every minute", () => {
    fc.assert(
      fc.property(timeline, (points) => {
        expect(pointsOf(runsOf(points))).toEqual(points);
      }),
    );
  });

  test("is one stretch for a quiet day, and stays small for a bad one", () => {
    const quiet = Array.from({ length: 1440 }, (_, index) => point(HOUR + index * 60));

    expect(runsOf(quiet)).toEqual([{ ...point(HOUR), minutes: 1440 }]);
    expect(runsOf(eventfulDay(HOUR * 1000)).length).toBeLessThan(40);
  });

  test("keeps an event in its minute", () => {
    const points = [point(0), point(60, { healed: 1 }), point(120)];

    expect(runsOf(points)).toEqual(points);
  });
});

describe("the chart", () => {
  test("draws nothing while the agent was away, and the last minute to its end", () => {
    const { minutes, ghosts } = chartOf([point(0, { ghosts: 2 }), point(600, { ghosts: 1 })]);

    expect([minutes, ghosts]).toEqual([
      [0, 60, 600, 660],
      [2, null, 1, 1],
    ]);
  });

  test("draws neither ghosts nor zero when a scan could not determine them", () => {
    expect(chartOf([point(0, { ghosts: 2 }), point(60, { unknown: true })]).ghosts).toEqual([2, null, null]);
  });

  test("keeps the lanes of events below the curve and apart", () => {
    const { lanes, marks, top } = chartOf([point(0, { ghosts: 40, healed: 3 }), point(60, { kernelStalls: 1 })]);

    expect(lanes).toHaveLength(LANES.length);
    expect(new Set([0, ...lanes]).size).toBe(LANES.length + 1);
    expect(Math.max(...lanes)).toBeLessThan(0);
    expect(top).toBe(40);
    expect(marks).toEqual([
      [lanes[0], null, null],
      [null, null, null],
      [null, null, null],
      [null, lanes[3], null],
    ]);
  });

  test("is empty for an agent that has just started", () => {
    expect(chartOf([])).toMatchObject({ minutes: [], ghosts: [], top: 4 });
  });
});

describe("text alternative of the chart", () => {
  test("lists the hours with events, newest first", () => {
    const quiet = Array.from({ length: 1440 }, (_, index) => point(HOUR + index * 60));
    const happened = new Map([
      [0, { ghosts: 2 }],
      [1, { ghosts: 1, healed: 1 }],
      [120, { crashRestarts: 1, kernelStalls: 2, failed: 1 }],
    ]);
    const points = quiet.map((one, index) => ({ ...one, ...happened.get(index) }));

    expect(hourLines(points, HOUR + DAY_S)).toEqual([
      { start: HOUR + 7200, words: "1 failed heal, 1 crash restart, 2 kernel stalls" },
      { start: HOUR, words: "at most 2 ghosts at once, 1 healed" },
    ]);
  });

  test("does not list unknown hours as hours without ghosts", () => {
    const blind = Array.from({ length: 60 }, (_, index) => point(HOUR + index * 60, { unknown: true }));
    const seen = [point(HOUR + 4 * 3600), point(HOUR + 4 * 3600 + 60, { healed: 1 })];

    expect(hourLines([...blind, ...seen], HOUR + 4 * 3600 + 130)).toEqual([
      { start: HOUR + 4 * 3600, words: "1 healed" },
      { start: HOUR + 4 * 3600 - DAY_S, words: "unknown for 23h57m" },
    ]);
    expect(hourLines([], HOUR)).toEqual([{ start: HOUR - DAY_S, words: "unknown for 24h" }]);
    expect(hourLines([point(HOUR + 1800)], HOUR + 1890)).toEqual([
      { start: HOUR, words: "unknown for 30m" },
      { start: HOUR - DAY_S, words: "unknown for 23h28m" },
    ]);
  });

  const wholeDay = Array.from({ length: 1440 }, (_, index) => point(index * 60));
  test.each([
    ["a day without data", [], "ghosts unknown"],
    ["a day without a verdict", wholeDay.map((one) => ({ ...one, unknown: true as const })), "ghosts unknown"],
    [
      "a day without a verdict and with a stall",
      [point(0, { unknown: true, kernelStalls: 1 })],
      "ghosts unknown, 1 kernel stall",
    ],
    ["a scanned day", wholeDay, "no ghosts, 0 healed, 0 crash restarts, 0 kernel stalls"],
    ["until the next scan", wholeDay.slice(0, -10), "no ghosts, 0 healed, 0 crash restarts, 0 kernel stalls"],
    [
      "a day of which the agent saw an hour",
      wholeDay.slice(-60),
      "no ghosts, 0 healed, 0 crash restarts, 0 kernel stalls; unknown for 23h",
    ],
    [
      "a minute with everything",
      [point(86_340, { ghosts: 1, healed: 2, failed: 1, crashRestarts: 1, kernelStalls: 1 })],
      "at most 1 ghost at once, 2 healed, 1 failed heal, 1 crash restart, 1 kernel stall; unknown for 23h59m",
    ],
  ])("summarises the day in a sentence: %s", (_name, points, sentence) => {
    expect(dayInWords(points, DAY_S)).toBe(sentence);
  });

  test("names only what happened in a minute", () => {
    expect(minuteInWords(point(0))).toBe("no ghosts");
    expect(minuteInWords(point(0, { unknown: true, crashRestarts: 1 }))).toBe("ghosts unknown, 1 crash restart");
    expect(minuteInWords(point(0, { ghosts: 1, failed: 2, kernelStalls: 1 }))).toBe(
      "1 ghost, 2 failed heals, 1 kernel stall",
    );
  });
});
