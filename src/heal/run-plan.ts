import type { Plan, PlannedAction } from "../plan/plan.ts";
import type { NodeTools } from "./node-tools.ts";
import { pool } from "./pool.ts";
import { type ActionResult, runAction } from "./run-action.ts";
import { stormBrake } from "./storm-brake.ts";

/** A stop or removal that takes longer than this is not slow but stuck: the others do not wait for it. */
const PATIENCE_MS = 3000;
const MOST_BESIDE = 32;

/** Takes all actions, many subjects at a time and one action at a time per sandbox, in the plan's order. */
export async function runPlan(
  plan: Plan,
  tools: NodeTools,
  concurrency: number,
  onResult: (result: ActionResult) => void,
): Promise<readonly ActionResult[]> {
  const workers = pool({ places: concurrency, patienceMs: PATIENCE_MS, mostBeside: MOST_BESIDE });
  const surroundings = { tools, brake: stormBrake(), slowDown: () => workers.slowDown() };
  const perSubject = Map.groupBy(plan.actions, subjectOf);
  const jobs = [...perSubject.values()].map((actions) => async () => {
    const results: ActionResult[] = [];
    for (const action of actions) {
      const result = await runAction(action, surroundings);
      onResult(result);
      results.push(result);
    }
    return results;
  });
  return (await workers.run(jobs)).flat();
}

function subjectOf({ finding }: PlannedAction): string {
  const { subject } = finding;
  return ("sandboxId" in subject ? subject.sandboxId : undefined) ?? finding.id;
}
