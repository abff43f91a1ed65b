import type { TimelinePoint } from "../state.ts";
import { count } from "./words.ts";

const MINUTE_S = 60;
export const DAY_S = 24 * 3600;

/** Events that are drawn as marks under the curve of ghosts, in lanes from the top. */
export const LANES = [
  { key: "healed", label: "healed" },
  { key: "failed", label: "failed" },
  { key: "crashRestarts", label: "restarts" },
  { key: "kernelStalls", label: "stalls" },
] as const satisfies readonly { readonly key: keyof TimelinePoint; readonly label: string }[];

/** Lanes lie below zero on the scale of the ghosts: one scale, one axis, and nothing overlaps. */
export interface Chart {
  /** The curve's highest place. */
  readonly top: number;
  /** Where on the scale each lane is. */
  readonly lanes: readonly number[];
  readonly minutes: readonly number[];
  readonly ghosts: readonly (number | null)[];
  readonly marks: readonly (readonly (number | null)[])[];
}

const LEAST_TOP = 4;
const LANE_HEIGHT = 0.26;

export function chartOf(points: readonly TimelinePoint[]): Chart {
  const top = Math.max(LEAST_TOP, ...points.map(({ ghosts }) => ghosts));
  const lanes = LANES.map((_lane, index) => -(index + 1) * LANE_HEIGHT * top);
  const slots = [
    ...points.flatMap((point, index) => [...gapBefore(points[index - 1], point), { ...point, isGap: false }]),
    ...points.slice(-1).map(({ minute, ghosts }) => ({ ...NOTHING, minute: minute + MINUTE_S, ghosts, isGap: false })),
  ];
  return {
    top,
    lanes,
    minutes: slots.map(({ minute }) => minute),
    ghosts: slots.map(({ ghosts, isGap }) => (isGap ? null : ghosts)),
    marks: LANES.map(({ key }, index) => slots.map((slot) => (slot[key] > 0 ? (lanes[index] ?? null) : null))),
  };
}

/** While the agent was away nothing is known: the curve ends, and starts again. */
function gapBefore(before: TimelinePoint | undefined, point: TimelinePoint): readonly Slot[] {
  if (before === undefined || point.minute - before.minute <= MINUTE_S) return [];
  return [{ ...NOTHING, minute: before.minute + MINUTE_S, isGap: true }];
}

interface Slot extends TimelinePoint {
  readonly isGap: boolean;
}

const NOTHING = { ghosts: 0, healed: 0, failed: 0, crashRestarts: 0, kernelStalls: 0 };

export interface Sum {
  readonly mostGhosts: number;
  readonly healed: number;
  readonly failed: number;
  readonly crashRestarts: number;
  readonly kernelStalls: number;
}

export interface Hour extends Sum {
  /** Its start, Unix seconds. */
  readonly start: number;
}

function sumOf(points: readonly TimelinePoint[]): Sum {
  const total = (key: keyof TimelinePoint): number => points.reduce((sum, point) => sum + point[key], 0);
  return {
    mostGhosts: Math.max(0, ...points.map(({ ghosts }) => ghosts)),
    healed: total("healed"),
    failed: total("failed"),
    crashRestarts: total("crashRestarts"),
    kernelStalls: total("kernelStalls"),
  };
}

/** Hours in which anything happened, newest first: the chart for those who do not see it. */
export function eventfulHours(points: readonly TimelinePoint[]): readonly Hour[] {
  const byHour = Map.groupBy(points, ({ minute }) => minute - (minute % 3600));
  return [...byHour]
    .map(([start, members]) => ({ start, ...sumOf(members) }))
    .filter((hour) => Object.entries(hour).some(([key, value]) => key !== "start" && value > 0))
    .toSorted((one, other) => other.start - one.start);
}

export function dayInWords(points: readonly TimelinePoint[]): string {
  const { mostGhosts, healed, failed, crashRestarts, kernelStalls } = sumOf(points);
  const events = [
    mostGhosts > 0 ? `at most ${count(mostGhosts, "ghost")} at once` : "no ghosts",
    `${healed} healed`,
    ...(failed > 0 ? [count(failed, "failed heal")] : []),
    count(crashRestarts, "crash restart"),
    count(kernelStalls, "kernel stall"),
  ];
  return events.join(", ");
}

export function minuteInWords({ ghosts, healed, failed, crashRestarts, kernelStalls }: TimelinePoint): string {
  const events = [
    ghosts > 0 ? count(ghosts, "ghost") : "no ghosts",
    ...(healed > 0 ? [`${healed} healed`] : []),
    ...(failed > 0 ? [count(failed, "failed heal")] : []),
    ...(crashRestarts > 0 ? [count(crashRestarts, "crash restart")] : []),
    ...(kernelStalls > 0 ? [count(kernelStalls, "kernel stall")] : []),
  ];
  return events.join(", ");
}
