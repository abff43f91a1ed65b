import type { TimelinePoint } from "./state.ts";

/** What one moment adds to its minute. */
export interface TimelineEntry {
  readonly at: Date;
  readonly ghosts: number;
  readonly healed?: number;
  readonly failed?: number;
  readonly crashRestarts?: number;
  readonly kernelStalls?: number;
}

/** A day of minutes. */
export const MOST_POINTS = 24 * 60;
/** Scans are about a minute apart: between two of them nothing has changed. In a longer gap the agent did not run. */
const LONGEST_FILL_MINUTES = 5;

/** Adds to the minute's point, and fills the minutes without a scan since the last one. */
export function addToTimeline(timeline: readonly TimelinePoint[], entry: TimelineEntry): readonly TimelinePoint[] {
  const minute = Math.floor(entry.at.getTime() / 60_000) * 60;
  const last = timeline.at(-1);
  if (last !== undefined && last.minute === minute) {
    const merged = mergedWith(last, entry);
    return isSame(last, merged) ? timeline : [...timeline.slice(0, -1), merged];
  }
  // After a step of the clock to the past, points of the future would stay at the end forever.
  const past = timeline.filter((point) => point.minute < minute);
  const fresh = mergedWith(emptyPoint(minute), entry);
  return [...past, ...filled(past.at(-1), minute), fresh].slice(-MOST_POINTS);
}

function filled(last: TimelinePoint | undefined, minute: number): readonly TimelinePoint[] {
  if (last === undefined) return [];
  const missing = (minute - last.minute) / 60 - 1;
  if (missing > LONGEST_FILL_MINUTES) return [];
  return Array.from({ length: missing }, (_, index) => ({
    ...emptyPoint(last.minute + (index + 1) * 60),
    ghosts: last.ghosts,
  }));
}

/** The most ghosts at a time are what the minute is remembered by: what came and was healed within it was there. */
function mergedWith(point: TimelinePoint, entry: TimelineEntry): TimelinePoint {
  return {
    minute: point.minute,
    ghosts: Math.max(point.ghosts, entry.ghosts),
    healed: point.healed + (entry.healed ?? 0),
    failed: point.failed + (entry.failed ?? 0),
    crashRestarts: point.crashRestarts + (entry.crashRestarts ?? 0),
    kernelStalls: point.kernelStalls + (entry.kernelStalls ?? 0),
  };
}

function isSame(one: TimelinePoint, other: TimelinePoint): boolean {
  return (
    one.ghosts === other.ghosts &&
    one.healed === other.healed &&
    one.failed === other.failed &&
    one.crashRestarts === other.crashRestarts &&
    one.kernelStalls === other.kernelStalls
  );
}

function emptyPoint(minute: number): TimelinePoint {
  return { minute, ghosts: 0, healed: 0, failed: 0, crashRestarts: 0, kernelStalls: 0 };
}
