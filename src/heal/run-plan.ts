import type { Plan, PlannedAction } from "../plan/plan.ts";
import type { NodeTools } from "./node-tools.ts";
import { pool } from "./pool.ts";
import { type ActionResult, runAction } from "./run-action.ts";
import type { StormBrake } from "./storm-brake.ts";
import { type Turn, turns } from "./turns.ts";

/** A stop or removal that takes longer than this is not slow but stuck: the others do not wait for it. */
const PATIENCE_MS = 2000;
const MOST_BESIDE = 32;
const FIRST_AT_A_TIME = 8;

/**
 * More are under way than have their turn at the runtime: while some are removed, the next are proven and announced, and
 * one sync of the journal serves them all. Only the first few go ahead, so that plugins are at work by then.
 */
const PREPARED_TIMES = 4;

/** Where each DEL is a process of its own, one that hangs says little about the next. */
const EACH_FOR_ITSELF = { patienceMs: PATIENCE_MS, mostUnanswered: 8 };
/** All go through one daemon, which may be slow for want of CPU: a second without an answer shows that it is not one DEL. */
const ONE_DAEMON = { patienceMs: 10_000, mostUnanswered: 2 };

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
  tools: Omit<NodeTools, "turn">,
  { concurrency, brake, onResult, onSlow }: RunPlanOptions,
): Promise<readonly ActionResult[]> {
  const limits = { patienceMs: PATIENCE_MS, mostBeside: MOST_BESIDE };
  const mostPrepared = PREPARED_TIMES * concurrency;
  const workers = pool({ places: mostPrepared, firstPlaces: FIRST_AT_A_TIME, ...limits });
  const places = pool({ places: concurrency, firstPlaces: FIRST_AT_A_TIME, ...limits });
  const probes = tools.conf?.multus?.thick === true ? ONE_DAEMON : EACH_FOR_ITSELF;
  const atRuntime = turns({ places, brake, probes, interruption: tools.interruption });
  const turn: Turn = (call, kind) => {
    const taken = atRuntime(call, kind);
    workers.speedUp(mostPrepared);
    return taken;
  };
  const surroundings = { tools: { ...tools, turn }, brake };

  async function take(action: PlannedAction): Promise<ActionResult> {
    const slow = setTimeout(() => onSlow(action), PATIENCE_MS);
    try {
      const result = await runAction(action, surroundings);
      onResult(result);
      return result;
    } finally {
      workers.speedUp(mostPrepared);
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
