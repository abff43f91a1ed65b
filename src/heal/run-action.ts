import type { Step } from "../classes/step.ts";
import type { PlannedAction } from "../plan/plan.ts";
import type { JournalId } from "./journal-id.ts";
import type { LoadWatch } from "./load-watch.ts";
import type { NodeTools } from "./node-tools.ts";
import { callsPlugins, runStep } from "./run-step.ts";
import type { StepResult } from "./step-result.ts";
import type { StormBrake } from "./storm-brake.ts";
import { unreadableEntry } from "./unreadable-entry.ts";

export type ActionOutcome = "healed" | "skipped" | "failed" | "refused";

/** What became of one planned action. */
export interface ActionResult {
  readonly action: PlannedAction;
  readonly outcome: ActionOutcome;
  readonly reason?: string;
  readonly journalId?: JournalId;
  readonly seconds: number;
}

export interface ActionSurroundings {
  readonly tools: NodeTools;
  readonly brake: StormBrake;
  readonly load: LoadWatch;
  readonly slowDown: () => void;
}

/** Pauses before another try of what failed because others held a lock. */
const BACK_OFF_MS = [500, 2000] as const;

/** Takes the steps of one action in order, and ends with the first that heals or does not succeed. */
export async function runAction(action: PlannedAction, surroundings: ActionSurroundings): Promise<ActionResult> {
  const startedAt = performance.now();
  const cleanUps: (() => Promise<void>)[] = [];
  let journalId: JournalId | undefined;
  let outcome: ActionOutcome = "healed";
  let reason: string | undefined;
  try {
    for (const step of action.steps) {
      const objection = objectionTo(step, surroundings);
      if (objection !== undefined) {
        outcome = "skipped";
        reason = objection;
        break;
      }
      const result = await take(step, action, surroundings);
      if ("journalId" in result) journalId ??= result.journalId;
      if (result.kind === "done" && result.cleanUp !== undefined) cleanUps.push(result.cleanUp);
      if (result.kind === "healed") break;
      if (result.kind === "refused" || result.kind === "failed") {
        outcome = result.kind;
        reason = result.reason;
        break;
      }
    }
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
  return {
    action,
    outcome,
    ...(reason === undefined ? {} : { reason }),
    ...(journalId === undefined ? {} : { journalId }),
    seconds: Math.round(performance.now() - startedAt) / 1000,
  };
}

/** Why a step is not even begun. */
function objectionTo(step: Step, { tools, brake }: ActionSurroundings): string | undefined {
  if (tools.interruption.stop.aborted) return "the run was interrupted before it came to this";
  return callsPlugins(step) ? brake.reason() : undefined;
}

async function take(step: Step, { finding }: PlannedAction, around: ActionSurroundings): Promise<StepResult> {
  const { tools, brake, load, slowDown } = around;
  if (!callsPlugins(step)) return await runStep(step, finding, tools);
  const unreadable = await unreadableEntry(step.sandboxId, tools);
  if (unreadable !== undefined) return { kind: "refused", reason: unreadable };
  for (let attempt = 0; ; attempt++) {
    const startedAt = performance.now();
    const result = await runStep(step, finding, tools);
    if (result.kind === "done") {
      brake.succeeded();
      load.took(performance.now() - startedAt);
    }
    if (result.kind !== "failed") return result;
    const { contention } = brake.failed(result.text ?? result.reason);
    if (!contention) return result;
    slowDown();
    const pause = BACK_OFF_MS[attempt];
    if (pause === undefined || tools.interruption.stop.aborted) return result;
    await tools.sleep(pause);
  }
}
