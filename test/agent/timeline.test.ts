import { describe, expect, test } from "vitest";
import type { TimelinePoint } from "../../src/agent/state/state.ts";
import { addToTimeline, MAX_POINTS } from "../../src/agent/state/timeline.ts";

const START_MS = Date.parse("2026-03-01T12:00:00Z");

function at(minutes: number): Date {
  return new Date(START_MS + minutes * 60_000);
}

function ghostsAt(minutes: readonly number[]): readonly TimelinePoint[] {
  let timeline: readonly TimelinePoint[] = [];
  for (const minute of minutes) timeline = addToTimeline(timeline, { at: at(minute), ghosts: minute });
  return timeline;
}

describe("timeline", () => {
  test("a minute has the maximum of ghosts and the sum of events", () => {
    const first = addToTimeline([], { at: at(0), ghosts: 3 });
    const second = addToTimeline(first, { at: at(0.2), ghosts: 0, healed: 2, failed: 1, crashRestarts: 4 });
    const third = addToTimeline(second, { at: at(0.9), ghosts: 1, healed: 1, kernelStalls: 1 });

    expect(third).toEqual([
      { minute: START_MS / 1000, ghosts: 3, healed: 3, failed: 1, crashRestarts: 4, kernelStalls: 1 },
    ]);
  });

  test("returns the same list while nothing changes, to avoid copies", () => {
    const timeline = addToTimeline([], { at: at(0), ghosts: 3 });

    expect(addToTimeline(timeline, { at: at(0.5), ghosts: 2 })).toBe(timeline);
  });

  test("fills minutes between two scans with the previous one; a long absence stays a gap", () => {
    const timeline = ghostsAt([1, 4, 30]);

    expect(timeline.map(({ minute, ghosts }) => [(minute - START_MS / 1000) / 60, ghosts])).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
      [4, 4],
      [30, 30],
    ]);
  });

  test("a scan with unknown ghosts adds no zero", () => {
    const blind = addToTimeline([], { at: at(0), ghosts: undefined });
    const filled = addToTimeline(blind, { at: at(2), ghosts: undefined, kernelStalls: 1 });
    const seen = addToTimeline(filled, { at: at(2.5), ghosts: 0 });

    expect(filled.map(({ unknown }) => unknown)).toEqual([true, true, true]);
    expect(seen.map(({ unknown }) => unknown)).toEqual([true, true, undefined]);
    expect(addToTimeline(seen, { at: at(2.7), ghosts: undefined })).toBe(seen);
  });

  test("fills minutes however far apart the agent's monotonic clock proves its scans", () => {
    const first = addToTimeline([], { at: at(0), ghosts: 2 });

    expect(addToTimeline(first, { at: at(30), ghosts: 2, sinceLastScanMs: 30 * 60_000 })).toHaveLength(31);
    expect(addToTimeline(first, { at: at(30), ghosts: 2, sinceLastScanMs: 3 * 60_000 })).toHaveLength(2);
  });

  test("holds the last 24 hours, even with gaps", () => {
    expect(ghostsAt([0, 600, MAX_POINTS - 1]).map(({ ghosts }) => ghosts)).toEqual([0, 600, MAX_POINTS - 1]);
    expect(ghostsAt([0, 600, MAX_POINTS]).map(({ ghosts }) => ghosts)).toEqual([600, MAX_POINTS]);
  });

  test("holds at most a day", () => {
    const timeline = ghostsAt(Array.from({ length: MAX_POINTS + 100 }, (_, minute) => minute));

    expect(timeline).toHaveLength(MAX_POINTS);
    expect(timeline.at(-1)?.ghosts).toBe(MAX_POINTS + 99);
  });

  test("continues in order after a clock step into the past", () => {
    const timeline = ghostsAt([1, 2, 3, 2]);

    expect(timeline.map(({ minute }) => (minute - START_MS / 1000) / 60)).toEqual([1, 2]);
  });
});
