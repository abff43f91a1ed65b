import { durationInWords } from "../../host/text.ts";
import { count } from "../../report/words.ts";
import type { TimelinePoint } from "../state/state.ts";
import type { TimelineRun } from "../state/state-json.ts";

const MINUTE_S = 60;
const HOUR_S = 3600;
export const DAY_S = 24 * HOUR_S;

/** Decodes the minutes. */
export function pointsOf(runs: readonly TimelineRun[]): readonly TimelinePoint[] {
  return runs.flatMap(({ minutes = 1, ...point }) =>
    Array.from({ length: minutes }, (_, index) => ({ ...point, minute: point.minute + index * MINUTE_S })),
  );
}

/** Events that are drawn as marks under the curve of ghosts, in lanes from the top. */
export const LANES = [
  { key: "healed", label: "healed" },
  { key: "failed", label: "failed" },
  { key: "crashRestarts", label: "restarts" },
  { key: "kernelStalls", label: "stalls" },
] as const satisfies readonly { readonly key: keyof TimelinePoint; readonly label: string }[];

export type Chart = ReturnType<typeof chartOf>;

const LEAST_TOP = 4;
const LANE_HEIGHT = 0.26;

/** Lanes lie below zero on the scale of the ghosts: one scale, one axis, and nothing overlaps. */
export function chartOf(points: readonly TimelinePoint[]) {
  /** The curve's highest place. */
  const top = Math.max(LEAST_TOP, ...points.map(({ ghosts }) => ghosts));
  /** Where on the scale each lane is. */
  const lanes = LANES.map((_lane, index) => -(index + 1) * LANE_HEIGHT * top);
  const slots = [
    ...points.flatMap((point, index) => [...gapBefore(points[index - 1], point), point]),
    ...points.slice(-1).map((last) => ({ ...last, ...NO_EVENTS, minute: last.minute + MINUTE_S })),
  ];
  return {
    top,
    lanes,
    minutes: slots.map(({ minute }) => minute),
    ghosts: slots.map(({ ghosts, unknown }) => (unknown === true ? null : ghosts)),
    marks: LANES.map(({ key }, index) => slots.map((slot) => (slot[key] > 0 ? (lanes[index] ?? null) : null))),
  };
}

/** While the agent was away nothing is known: the curve ends, and starts again. */
function gapBefore(before: TimelinePoint | undefined, point: TimelinePoint): readonly TimelinePoint[] {
  if (before === undefined || point.minute - before.minute <= MINUTE_S) return [];
  return [{ ...NO_EVENTS, ghosts: 0, unknown: true, minute: before.minute + MINUTE_S }];
}

const NO_EVENTS = { healed: 0, failed: 0, crashRestarts: 0, kernelStalls: 0 };

type Events = Pick<TimelinePoint, (typeof LANES)[number]["key"]>;

type Summary = ReturnType<typeof summaryOf>;

/** What is known of some minutes in a row. */
function summaryOf(points: readonly TimelinePoint[], minutes: number) {
  const total = (key: keyof Events): number => points.reduce((sum, point) => sum + point[key], 0);
  const known = points.filter(({ unknown }) => unknown !== true);
  return {
    mostGhosts: Math.max(0, ...known.map(({ ghosts }) => ghosts)),
    healed: total("healed"),
    failed: total("failed"),
    crashRestarts: total("crashRestarts"),
    kernelStalls: total("kernelStalls"),
    knownMinutes: known.length,
    /** Of the whole stretch: the agent did not run, or its scans could not determine the ghosts. */
    unknownMinutes: Math.max(0, minutes - known.length),
  };
}

/** Where knowledge can end at the earliest: the next scan is still to come, and is no gap. */
function endOf(points: readonly TimelinePoint[], nowS: number): number {
  const last = points.at(-1);
  return last === undefined ? nowS : Math.min(nowS, last.minute + MINUTE_S);
}

function wholeMinutes(fromS: number, untilS: number): number {
  return Math.max(0, Math.floor((untilS - fromS) / MINUTE_S));
}

/** A young agent's first minutes fill the chart, too. */
const SHORTEST_S = 600;

/** Where the chart starts. */
export function startOf(minutes: readonly number[], nowS: number): number {
  return Math.max(nowS - DAY_S, Math.min(minutes[0] ?? nowS, nowS - SHORTEST_S));
}

/** `Last 24 hours`, or how far back the chart goes. */
export function rangeInWords(points: readonly TimelinePoint[], nowS: number): string {
  const seconds =
    nowS -
    startOf(
      points.map(({ minute }) => minute),
      nowS,
    );
  return seconds > DAY_S - HOUR_S ? "Last 24 hours" : `Last ${durationInWords(seconds)}`;
}

export function dayInWords(points: readonly TimelinePoint[], nowS: number): string {
  const day = summaryOf(points, wholeMinutes(nowS - DAY_S, endOf(points, nowS)));
  if (day.knownMinutes === 0) return ["ghosts unknown", ...eventsIn(day)].join(", ");
  const { mostGhosts, healed, failed, crashRestarts, kernelStalls } = day;
  const events = [
    mostGhosts > 0 ? `at most ${count(mostGhosts, "ghost")} at once` : "no ghosts",
    `${healed} healed`,
    ...(failed > 0 ? [count(failed, "failed heal")] : []),
    count(crashRestarts, "crash restart"),
    count(kernelStalls, "kernel stall"),
  ];
  return [events.join(", "), ...unknownIn(day)].join("; ");
}

export function minuteInWords(point: TimelinePoint): string {
  const { ghosts, unknown } = point;
  const standing = ghosts > 0 ? count(ghosts, "ghost") : "no ghosts";
  return [unknown === true ? "ghosts unknown" : standing, ...eventsIn(point)].join(", ");
}

function eventsIn({ healed, failed, crashRestarts, kernelStalls }: Events): readonly string[] {
  return [
    ...(healed > 0 ? [`${healed} healed`] : []),
    ...(failed > 0 ? [count(failed, "failed heal")] : []),
    ...(crashRestarts > 0 ? [count(crashRestarts, "crash restart")] : []),
    ...(kernelStalls > 0 ? [count(kernelStalls, "kernel stall")] : []),
  ];
}

function unknownIn({ unknownMinutes }: Summary): readonly string[] {
  return unknownMinutes === 0 ? [] : [`unknown for ${durationInWords(unknownMinutes * MINUTE_S)}`];
}

/**
 * The chart for those who do not see it, newest first: a line for an hour in which something happened, or for hours of
 * which nothing is known. Hours without a line were scanned, and nothing happened.
 */
export function hourLines(points: readonly TimelinePoint[], nowS: number) {
  const byHour = Map.groupBy(points, ({ minute }) => minute - (minute % HOUR_S));
  const first = nowS - DAY_S - ((nowS - DAY_S) % HOUR_S);
  const end = endOf(points, nowS);
  const hours = Array.from({ length: Math.ceil((nowS - first) / HOUR_S) }, (_, index) => {
    const start = first + index * HOUR_S;
    const minutes = wholeMinutes(Math.max(start, nowS - DAY_S), Math.min(start + HOUR_S, end));
    return { start, ...summaryOf(byHour.get(start) ?? [], minutes) };
  });
  return joined(hours)
    .flatMap(({ start, ...hour }) => {
      const words = hourInWords(hour);
      return words === "" ? [] : [{ start, words }];
    })
    .toReversed();
}

/** Hours of which nothing at all is known are one stretch. */
function joined<Hours extends Summary>(hours: readonly Hours[]): readonly Hours[] {
  const stretches: Hours[] = [];
  for (const hour of hours) {
    const last = stretches.at(-1);
    if (last === undefined || !isBlank(last) || !isBlank(hour)) stretches.push(hour);
    else stretches[stretches.length - 1] = { ...last, unknownMinutes: last.unknownMinutes + hour.unknownMinutes };
  }
  return stretches;
}

function isBlank(hour: Summary): boolean {
  return hour.knownMinutes === 0 && eventsIn(hour).length === 0;
}

function hourInWords(hour: Summary): string {
  const ghosts = hour.mostGhosts > 0 ? [`at most ${count(hour.mostGhosts, "ghost")} at once`] : [];
  const happened = [...ghosts, ...eventsIn(hour)];
  return [...(happened.length === 0 ? [] : [happened.join(", ")]), ...unknownIn(hour)].join("; ");
}
