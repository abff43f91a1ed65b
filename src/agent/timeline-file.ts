import { join } from "node:path";
import * as v from "valibot";
import { writeDurably } from "../heal/state/durable-files.ts";
import { openStateDir, readStateDocument } from "../heal/state/state-dir.ts";
import { describeError } from "../host/source.ts";
import type { TimelinePoint } from "./state.ts";
import type { Watched } from "./store.ts";
import { MAX_POINTS } from "./timeline.ts";

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const TimelineFile = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("Timeline"),
  points: v.array(
    v.object({
      minute: count,
      ghosts: count,
      unknown: v.exactOptional(v.literal(true)),
      healed: count,
      failed: count,
      crashRestarts: count,
      kernelStalls: count,
    }),
  ),
});

export type ReadTimeline =
  | { readonly points: readonly TimelinePoint[] }
  /** What is wrong with the file. It will be written again. */
  | { readonly problem: string };

/** The last day's timeline of the previous agent. */
export function readTimeline(stateDir: string, now: Date): ReadTimeline {
  const path = join(stateDir, "timeline.json");
  const document = readStateDocument(path, TimelineFile);
  if (document.kind === "none") return { points: [] };
  if (document.kind === "unreadable") return { problem: document.problem };
  const seconds = now.getTime() / 1000;
  const isOfLastDay = ({ minute }: TimelinePoint): boolean => minute <= seconds && minute > seconds - MAX_POINTS * 60;
  return { points: document.value.points.filter(isOfLastDay).slice(-MAX_POINTS) };
}

/** Gives what went wrong: a timeline that cannot be kept is logged and nothing more. */
async function writeTimeline(
  stateDir: string,
  uid: number,
  points: readonly TimelinePoint[],
): Promise<string | undefined> {
  const opened = await openStateDir(stateDir, uid);
  if (!opened.ok) return opened.refusal.message;
  try {
    const document = { apiVersion: "unghost.dev/v1", kind: "Timeline", points };
    await writeDurably(join(opened.value.root, "timeline.json"), `${JSON.stringify(document)}\n`);
    return undefined;
  } catch (thrown) {
    return `the timeline could not be kept: ${describeError(thrown)}`;
  }
}

const KEEP_EVERY_MS = 5 * 60_000;

/** Writes the timeline periodically while it changes, and at the end. */
export function keepTimeline(
  store: Watched,
  stateDir: string,
  uid: number,
  onProblem: (problem: string) => void,
): { close(): Promise<void> } {
  let kept = store.state().timeline;

  async function keep(): Promise<void> {
    const { timeline } = store.state();
    if (timeline === kept) return;
    const problem = await writeTimeline(stateDir, uid, timeline);
    if (problem === undefined) kept = timeline;
    else onProblem(problem);
  }

  const timer = setInterval(() => void keep(), KEEP_EVERY_MS);
  timer.unref();
  return {
    close: async () => {
      clearInterval(timer);
      await keep();
    },
  };
}
