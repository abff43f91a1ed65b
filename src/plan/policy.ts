import { type Reason, reason } from "../evidence/finding.ts";
import { STEPS } from "../evidence/step.ts";
import type { DiagnosisPolicy, NodeView } from "../evidence/view.ts";
import { ZERO_TIME } from "../node/types/runtime.ts";
import type { PlannedAction } from "./plan.ts";

/** How far this run may go. */
export interface HealPolicy extends DiagnosisPolicy {
  /** Remove every sandbox that is proven dead, including finished pods. */
  readonly allDead: boolean;
  /** The maximum number of subjects per run; the rest is left for the next run. */
  readonly cap: number;
  /** At boot, on a node with a kubelet: only what needs a repair is healed. */
  readonly kubeletFollows?: boolean;
  /** Sandboxes whose removal an earlier run started and did not finish, from its journal. */
  readonly unfinished?: ReadonlySet<string>;
  /** Manual classes that may be healed: by `--allow`, or by the agent's policy. */
  readonly consented?: ReadonlySet<string>;
  /** `--no-kick`: do not restart pods that crashed because of the finding. */
  readonly noKick?: boolean;
}

/** A node with more findings than this needs an operator first. */
export const DEFAULT_CAP = 2000;

interface Capped {
  readonly actions: readonly PlannedAction[];
  readonly overCap: readonly PlannedAction[];
}

/**
 * Keeps the first N, in order. Moved files do not count: twenty thousand of them take a minute without any load, and a
 * cap would force the operator to start ten runs.
 */
export function capped(actions: readonly PlannedAction[], cap: number): Capped {
  const kept: PlannedAction[] = [];
  const overCap: PlannedAction[] = [];
  let counted = 0;
  for (const action of actions) {
    const counts = action.steps.some(({ kind }) => STEPS[kind].reversible !== true);
    if (counts && counted >= cap) overCap.push(action);
    else kept.push(action);
    if (counts) counted++;
  }
  return { actions: kept, overCap };
}

/** No node with this software was installed earlier; an earlier time comes from a clock without battery. */
export const EARLIEST_PLAUSIBLE = new Date("2020-01-01T00:00:00Z");
/** The runtime may set a creation time shortly before unghost reads the clock. */
const SLACK_MS = 5000;

/** Why the wall clock is not trusted; undefined if it is plausible. */
export function doubtAboutClock({ snapshot, sandboxes }: NodeView): Reason<"clock-in-doubt"> | undefined {
  const now = snapshot.observedAt;
  const shown = `the clock shows ${now.toISOString()}`;
  if (now < EARLIEST_PLAUSIBLE)
    return reason("clock-in-doubt", `${shown}, which is implausible: set it, then heal again`);
  const created = sandboxes.filter(({ createdAt }) => createdAt !== ZERO_TIME);
  const newestMs = Math.max(...created.map(({ createdAt }) => Number(createdAt / 1_000_000n)));
  if (newestMs <= now.getTime() + SLACK_MS) return undefined;
  const newest = new Date(newestMs).toISOString();
  return reason("clock-in-doubt", `${shown}, and a sandbox is dated ${newest}: set the clock, then heal again`);
}
