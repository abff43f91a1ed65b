import type { TimelinePoint } from "./state.ts";

/** Consecutive equal minutes; one minute by default. */
export interface TimelineRun extends TimelinePoint {
  readonly minutes?: number;
}

const MINUTE_S = 60;

/** A day is 1440 minutes, and most equal the previous one: run-length encoding makes it a few lines. */
export function runsOf(timeline: readonly TimelinePoint[]): readonly TimelineRun[] {
  const runs: TimelineRun[] = [];
  for (const point of timeline) {
    const last = runs.at(-1);
    if (last === undefined || !goesOn(last, point)) runs.push(point);
    else runs[runs.length - 1] = { ...last, minutes: minutesOf(last) + 1 };
  }
  return runs;
}

/** Decodes the minutes. */
export function pointsOf(runs: readonly TimelineRun[]): readonly TimelinePoint[] {
  return runs.flatMap(({ minutes = 1, ...point }) =>
    Array.from({ length: minutes }, (_, index) => ({ ...point, minute: point.minute + index * MINUTE_S })),
  );
}

/** A minute with events is not merged. */
function goesOn(run: TimelineRun, point: TimelinePoint): boolean {
  const end = run.minute + minutesOf(run) * MINUTE_S;
  const isAlike = point.ghosts === run.ghosts && point.unknown === run.unknown;
  return point.minute === end && isAlike && isUneventful(run) && isUneventful(point);
}

function minutesOf({ minutes = 1 }: TimelineRun): number {
  return minutes;
}

function isUneventful({ healed, failed, crashRestarts, kernelStalls }: TimelinePoint): boolean {
  return healed + failed + crashRestarts + kernelStalls === 0;
}
