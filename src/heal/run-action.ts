import type { PlannedAction } from "../plan/plan.ts";
import type { JournalId } from "./journal-id.ts";
import type { NodeTools } from "./node-tools.ts";
import { callsPlugins, runStep } from "./run-step.ts";
import type { StepResult } from "./step-result.ts";
import type { StormBrake } from "./storm-brake.ts";

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
  readonly slowDown: () => void;
}

/** Takes the steps of one action in order, and ends with the first that heals or does not succeed. */
export async function runAction(action: PlannedAction, surroundings: ActionSurroundings): Promise<ActionResult> {
  const startedAt = performance.now();
  const cleanUps: (() => Promise<void>)[] = [];
  let journalId: JournalId | undefined;
  let outcome: ActionOutcome = "healed";
  let reason: string | undefined;
  try {
    for (const step of action.steps) {
      const brake = callsPlugins(step) ? surroundings.brake.reason() : undefined;
      const result: StepResult =
        brake === undefined
          ? await runStep(step, action.finding, surroundings.tools)
          : { kind: "refused", reason: brake };
      if (callsPlugins(step)) takeNote(result, surroundings);
      if ("journalId" in result) journalId ??= result.journalId;
      if (result.kind === "done" && result.cleanUp !== undefined) cleanUps.push(result.cleanUp);
      if (result.kind === "healed") break;
      if (result.kind === "refused" || result.kind === "failed") {
        outcome = brake === undefined ? result.kind : "skipped";
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

function takeNote(result: StepResult, { brake, slowDown }: ActionSurroundings): void {
  if (result.kind === "done") brake.succeeded();
  if (result.kind === "failed" && brake.failed(result.text ?? result.reason).slowDown) slowDown();
}
