import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as v from "valibot";
import { readStateDocument } from "../../heal/state/state-dir.ts";
import { keepFile, type StatePlace, writeStateFile } from "./kept-file.ts";
import { TimelinePoint } from "./state.ts";
import type { Watched } from "./store.ts";

/** What one moment adds to its minute. */
interface TimelineEntry extends Partial<Omit<TimelinePoint, "minute" | "ghosts" | "unknown">> {
  readonly at: Date;
  /** Undefined if a scan could not determine it. */
  readonly ghosts: number | undefined;
  /** Since the end of the last scan, by the monotonic clock. */
  readonly sinceLastScanMs?: number;
}

/** A day of minutes. */
export const MAX_POINTS = 24 * 60;
/**
 * A restart of the agent, or scans about a minute apart. In a longer gap the agent did not run, unless its monotonic
 * clock proves it.
 */
const LONGEST_FILL_MINUTES = 5;

/** Adds to the minute's point, and fills the minutes without a scan since the last one. */
export function addToTimeline(timeline: readonly TimelinePoint[], entry: TimelineEntry): readonly TimelinePoint[] {
  const minute = Math.floor(entry.at.getTime() / 60_000) * 60;
  const last = timeline.at(-1);
  if (last !== undefined && last.minute === minute) {
    const merged = mergedWith(last, entry);
    return isDeepStrictEqual(last, merged) ? timeline : [...timeline.slice(0, -1), merged];
  }
  // After a clock step into the past, points of the future would stay at the end forever.
  const past = timeline.filter((point) => point.minute < minute && point.minute > minute - MAX_POINTS * 60);
  const fresh = mergedWith({ ...emptyPoint(minute), unknown: true }, entry);
  return [...past, ...filled(past.at(-1), minute, entry), fresh];
}

function filled(
  last: TimelinePoint | undefined,
  minute: number,
  { sinceLastScanMs = 0 }: TimelineEntry,
): readonly TimelinePoint[] {
  if (last === undefined) return [];
  const missing = (minute - last.minute) / 60 - 1;
  if (missing > Math.max(LONGEST_FILL_MINUTES, sinceLastScanMs / 60_000)) return [];
  return Array.from({ length: missing }, (_, index) => ({
    ...emptyPoint(last.minute + (index + 1) * 60),
    ghosts: last.ghosts,
    ...(last.unknown && { unknown: last.unknown }),
  }));
}

/** Keeps the maximum of ghosts, so that a ghost that was found and healed within the minute is visible. */
function mergedWith(point: TimelinePoint, entry: TimelineEntry): TimelinePoint {
  const { healed = 0, failed = 0, crashRestarts = 0, kernelStalls = 0 } = entry;
  return {
    minute: point.minute,
    ghosts: Math.max(point.ghosts, entry.ghosts ?? 0),
    ...(point.unknown === true && entry.ghosts === undefined ? { unknown: true } : {}),
    healed: point.healed + healed,
    failed: point.failed + failed,
    crashRestarts: point.crashRestarts + crashRestarts,
    kernelStalls: point.kernelStalls + kernelStalls,
  };
}

function emptyPoint(minute: number): TimelinePoint {
  return { minute, ghosts: 0, healed: 0, failed: 0, crashRestarts: 0, kernelStalls: 0 };
}

const TimelineFile = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("Timeline"),
  points: v.array(TimelinePoint),
});

/** The last day's timeline of the previous agent, or what is wrong with its file, which will be written again. */
export function readTimeline(
  stateDir: string,
  now: Date,
): { readonly points: readonly TimelinePoint[] } | { readonly problem: string } {
  const path = join(stateDir, "timeline.json");
  const document = readStateDocument(path, TimelineFile);
  if (document.kind === "none") return { points: [] };
  if (document.kind === "unreadable") return { problem: document.problem };
  const seconds = now.getTime() / 1000;
  const isOfLastDay = ({ minute }: TimelinePoint): boolean => minute <= seconds && minute > seconds - MAX_POINTS * 60;
  return { points: document.value.points.filter(isOfLastDay).slice(-MAX_POINTS) };
}

const KEEP_EVERY_MS = 5 * 60_000;

/** Writes the timeline while it changes, and at the end. A timeline that cannot be kept is logged and nothing more. */
export function keepTimeline(
  store: Watched,
  place: StatePlace,
  onProblem: (problem: string) => void,
): { close(): Promise<void> } {
  let { timeline } = store.state();
  const document = () => `${JSON.stringify({ apiVersion: "unghost.dev/v1", kind: "Timeline", points: timeline })}\n`;
  const write = () => writeStateFile(place, "timeline.json", "the timeline", document);
  const file = keepFile({ everyMs: KEEP_EVERY_MS, write, onProblem });
  const stopListening = store.onChange((state) => {
    if (state.timeline === timeline) return;
    ({ timeline } = state);
    file.changed();
  });
  return {
    close: () => {
      stopListening();
      return file.close();
    },
  };
}
