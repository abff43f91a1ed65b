import type { Plan, PlannedAction } from "../plan/plan.ts";
import type { StormBrake } from "./proof/storm-brake.ts";
import { semaphore, turns } from "./proof/turns.ts";
import { type ActionResult, runAction } from "./run-action.ts";
import type { StepTools } from "./steps/step-result.ts";

/** A stop or removal that takes longer than this is stuck: the others do not wait for it. */
const PATIENCE_MS = 2000;
const MAX_ASIDE = 32;

/** If each DEL is a separate process, a hung one is little evidence about the next. */
const PROCESS_PER_DEL = { patienceMs: PATIENCE_MS, mostUnanswered: 8 };
/** All go through one daemon, which may be slow for lack of CPU: a second without an answer shows that it is not one DEL. */
const ONE_DAEMON = { patienceMs: 10_000, mostUnanswered: 2 };

/** Everything except for the turns, which the actions of one plan share. */
export type PlanTools = Omit<StepTools, "turn">;

interface RunPlanOptions {
  readonly concurrency: number;
  readonly brake: StormBrake;
  readonly onResult: (result: ActionResult) => void;
  /** Called once for an action that takes longer than the others wait. */
  readonly onSlow: (action: PlannedAction) => void;
}

/** Runs all actions, many subjects concurrently and one action at a time per lane, in the plan's order. */
export async function runPlan(
  plan: Plan,
  tools: PlanTools,
  { concurrency, brake, onResult, onSlow }: RunPlanOptions,
): Promise<readonly ActionResult[]> {
  const limits = { patienceMs: PATIENCE_MS, mostAside: MAX_ASIDE };
  // While some actions wait for the runtime, as many others prove and save logs, so that the runtime is not idle in
  // between.
  const actions = semaphore({ ...limits, slots: 2 * concurrency - 1 });
  const probes = tools.conf?.multus?.thick === true ? ONE_DAEMON : PROCESS_PER_DEL;
  const turn = turns({
    slots: semaphore({ ...limits, slots: concurrency }),
    brake,
    probes,
    interruption: tools.interruption,
  });
  const surroundings = { tools: { ...tools, turn }, brake };

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
  const results = [...lanes.values()].map((lane) =>
    actions.run(async () => {
      const done: ActionResult[] = [];
      for (const action of lane) done.push(await take(action));
      return done;
    }),
  );
  return (await Promise.all(results)).flat();
}
