import type { Plan, PlannedAction } from "../plan/plan.ts";
import { loadWatch } from "./load-watch.ts";
import type { NodeTools } from "./node-tools.ts";
import { pool } from "./pool.ts";
import { type ActionResult, runAction } from "./run-action.ts";
import type { StormBrake } from "./storm-brake.ts";

/** A stop or removal that takes longer than this is not slow but stuck: the others do not wait for it. */
const PATIENCE_MS = 2000;
const MOST_BESIDE = 32;

export interface RunPlanOptions {
  readonly concurrency: number;
  readonly brake: StormBrake;
  readonly onResult: (result: ActionResult) => void;
  /** Told once for an action that takes longer than the rest is made to wait. */
  readonly onSlow: (action: PlannedAction) => void;
}

/** Takes all actions, many subjects at a time and one action at a time per lane, in the plan's order. */
export async function runPlan(
  plan: Plan,
  tools: NodeTools,
  { concurrency, brake, onResult, onSlow }: RunPlanOptions,
): Promise<readonly ActionResult[]> {
  const workers = pool({ places: concurrency, patienceMs: PATIENCE_MS, mostBeside: MOST_BESIDE });
  const load = loadWatch(workers);
  const surroundings = { tools, brake, load, slowDown: () => workers.slowDown() };

  async function take(action: PlannedAction): Promise<ActionResult> {
    const slow = setTimeout(() => onSlow(action), PATIENCE_MS);
    try {
      const result = await runAction(action, surroundings);
      onResult(result);
      return result;
    } finally {
      clearTimeout(slow);
    }
  }

  const lanes = Map.groupBy(plan.actions, ({ lane }) => lane);
  const jobs = [...lanes.values()].map((actions) => async () => {
    const results: ActionResult[] = [];
    for (const action of actions) results.push(await take(action));
    return results;
  });
  return (await workers.run(jobs)).flat();
}
