import { classById } from "../../classes/index.ts";
import type { AgentState, TimelinePoint } from "./state.ts";

/** Of a failure class. */
export type ClassWords = Readonly<Record<"code" | "title" | "explanation", string>>;

/**
 * The state as JSON for the page: dates as ISO strings, maps as plain objects, the timeline run-length encoded, and the
 * texts of the classes that occur, because all of them would be a third of the page.
 */
export function stateJson(state: AgentState): string {
  const known = written.get(state);
  if (known !== undefined) return known;
  const shown = { ...state, timeline: runsOf(state.timeline), classWords: wordsFor(state) };
  const json = JSON.stringify(shown, (_key, value: unknown) =>
    value instanceof Map ? Object.fromEntries(value) : value,
  );
  written.set(state, json);
  return json;
}

/** A state never changes, and is asked for many times. */
const written = new WeakMap<AgentState, string>();

function wordsFor({ sightings, heals, runs = [] }: AgentState): Readonly<Record<string, ClassWords>> {
  const healed = [...heals, ...runs.flatMap(({ items }) => items)];
  const ids = new Set([...sightings.map(({ finding }) => finding.class), ...healed.map((one) => one.class)]);
  return Object.fromEntries(
    [...ids].flatMap((id) => {
      const known = classById(id);
      if (known === undefined) return [];
      const { code, title, explanation } = known;
      return [[id, { code, title, explanation }]];
    }),
  );
}

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
    else runs[runs.length - 1] = { ...last, minutes: (last.minutes ?? 1) + 1 };
  }
  return runs;
}

/** A minute with events is not merged. */
function goesOn(run: TimelineRun, point: TimelinePoint): boolean {
  const end = run.minute + (run.minutes ?? 1) * MINUTE_S;
  const isAlike = point.ghosts === run.ghosts && point.unknown === run.unknown;
  return point.minute === end && isAlike && [run, point].every(isUneventful);
}

function isUneventful({ healed, failed, crashRestarts, kernelStalls }: TimelinePoint): boolean {
  return healed + failed + crashRestarts + kernelStalls === 0;
}
