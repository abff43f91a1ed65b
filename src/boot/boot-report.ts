import { join } from "node:path";
import * as v from "valibot";
import { writeDurably } from "../heal/state/durable-files.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import type { Runtime } from "../node/types/runtime.ts";

/** One step of the hook: before or after the runtime's start. */
const StepSchema = v.object({
  at: v.string(),
  mode: v.picklist(["before", "after"]),
  /**
   * healed: no ghost is left; left: some ghosts remain; nothing: there was nothing to do; failed: the hook did not
   * complete.
   */
  outcome: v.picklist(["healed", "left", "nothing", "failed"]),
  reason: v.string(),
  healed: v.number(),
  seconds: v.number(),
});

type BootStep = v.InferOutput<typeof StepSchema>;

/** The result of the hook at the last boot; stored in the state directory, or in /run if the disk is full. */
export const BootReportSchema = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("BootReport"),
  boot: v.string(),
  ...StepSchema.entries,
  left: v.array(v.string()),
  /** The steps of the same boot before this one, oldest first. */
  earlier: v.optional(v.array(StepSchema)),
});

export type BootReport = v.InferOutput<typeof BootReportSchema>;

/** A service that restarts in a loop retries a failed step each time. */
const MOST_STEPS = 10;

/** The step after the runtime's start is reported beside the one before it. */
export function withEarlierSteps(report: BootReport, last: BootReport | undefined): BootReport {
  if (last === undefined || last.boot === "" || last.boot !== report.boot) return report;
  return { ...report, earlier: stepsOf(last).slice(1 - MOST_STEPS) };
}

/** Oldest first. */
export function stepsOf({ earlier = [], at, mode, outcome, reason, healed, seconds }: BootReport): readonly BootStep[] {
  return [...earlier, { at, mode, outcome, reason, healed, seconds }];
}

export function readBootReport(path: string): BootReport | undefined {
  const file = readRegularFile(path);
  if (file.kind !== "content") return undefined;
  const parsed = v.safeParse(BootReportSchema, parseJson(file.text));
  return parsed.success ? parsed.output : undefined;
}

const SeenSchema = v.object({ name: v.string(), version: v.string() });

export type SeenRuntime = v.InferOutput<typeof SeenSchema>;

const FILE = "runtime.json";

/** The node's own runtime when it last answered: the last known writer of its records. */
export function lastSeenRuntime(stateDir: string): SeenRuntime | undefined {
  const file = readRegularFile(join(stateDir, FILE));
  const parsed = v.safeParse(SeenSchema, file.kind === "content" ? parseJson(file.text) : undefined);
  return parsed.success ? parsed.output : undefined;
}

/** Written if it has changed. Never for a temporary runtime. */
export async function noteRuntime(stateDir: string, { name, version, reachable }: Runtime): Promise<void> {
  const seen = lastSeenRuntime(stateDir);
  if (!reachable || (seen?.name === name && seen.version === version)) return;
  await writeDurably(join(stateDir, FILE), `${JSON.stringify({ name, version })}\n`);
}
