import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chartOf, dayInWords, eventfulHours, LANES, minuteInWords } from "../../../src/agent/page/timeline.ts";
import { pointsOf, runsOf } from "../../../src/agent/timeline-runs.ts";
import { eventfulDay, point } from "./agent-states.ts";

const HOUR = 1_800_000_000 - (1_800_000_000 % 3600);

describe("the day in stretches", () => {
  const few = fc.integer({ min: 0, max: 2 });
  const rarely = fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, few);
  const happened = fc.record({
    ghosts: few,
    healed: rarely,
    failed: rarely,
    crashRestarts: rarely,
    kernelStalls: rarely,
  });
  const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 200 }), { maxLength: 100 });
  const timeline = minutes.chain((when) =>
    fc
      .array(happened, { minLength: when.length, maxLength: when.length })
      .map((events) => when.toSorted((a, b) => a - b).map((minute, index) => point(minute * 60, events[index]))),
  );

  test("gives every minute back as it was", () => {
    fc.assert(
      fc.property(timeline, (points) => {
        expect(pointsOf(runsOf(points))).toEqual(points);
      }),
    );
  });

  test("a quiet day is one of them, and a bad one stays small", () => {
    const quiet = Array.from({ length: 1440 }, (_, index) => point(HOUR + index * 60));

    expect(runsOf(quiet)).toEqual([{ ...point(HOUR), minutes: 1440 }]);
    expect(runsOf(eventfulDay(HOUR * 1000)).length).toBeLessThan(40);
  });

  test("an event stays in its minute", () => {
    const points = [point(0), point(60, { healed: 1 }), point(120)];

    expect(runsOf(points)).toEqual(points);
  });
});

describe("the chart", () => {
  test("draws nothing where the agent was away, and the last minute to its end", () => {
    const { minutes, ghosts } = chartOf([point(0, { ghosts: 2 }), point(600, { ghosts: 1 })]);

    expect([minutes, ghosts]).toEqual([
      [0, 60, 600, 660],
      [2, null, 1, 1],
    ]);
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

  test("of an agent that has just started is empty", () => {
    expect(chartOf([])).toMatchObject({ minutes: [], ghosts: [], top: 4 });
  });
});

describe("the chart for those who do not see it", () => {
  test("names the hours in which anything happened, newest first", () => {
    const points = [
      point(HOUR, { ghosts: 2 }),
      point(HOUR + 60, { ghosts: 1, healed: 1 }),
      point(HOUR + 3600),
      point(HOUR + 7200, { crashRestarts: 1, kernelStalls: 2, failed: 1 }),
    ];

    expect(eventfulHours(points)).toEqual([
      { start: HOUR + 7200, mostGhosts: 0, healed: 0, failed: 1, crashRestarts: 1, kernelStalls: 2 },
      { start: HOUR, mostGhosts: 2, healed: 1, failed: 0, crashRestarts: 0, kernelStalls: 0 },
    ]);
  });

  test.each([
    [[], "no ghosts, 0 healed, 0 crash restarts, 0 kernel stalls"],
    [
      [point(0, { ghosts: 1, healed: 2, failed: 1, crashRestarts: 1, kernelStalls: 1 })],
      "at most 1 ghost at once, 2 healed, 1 failed heal, 1 crash restart, 1 kernel stall",
    ],
  ])("sums the day up in a sentence: %#", (points, sentence) => {
    expect(dayInWords(points)).toBe(sentence);
  });

  test("names only what happened in a minute", () => {
    expect(minuteInWords(point(0))).toBe("no ghosts");
    expect(minuteInWords(point(0, { ghosts: 1, failed: 2, kernelStalls: 1 }))).toBe(
      "1 ghost, 2 failed heals, 1 kernel stall",
    );
  });
});
