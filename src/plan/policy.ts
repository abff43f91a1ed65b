import type { DiagnosisPolicy } from "../evidence/policy.ts";
import type { NodeView } from "../evidence/view.ts";
import { ZERO_TIME } from "../snapshot/types/runtime.ts";
import type { PlannedAction } from "./plan.ts";

/** How far this run may go. */
export interface HealPolicy extends DiagnosisPolicy {
  /** Sweep everything that is proven dead, finished pods included. */
  readonly allDead: boolean;
  /** The most subjects one run touches; what is over it is left for the next. */
  readonly cap: number;
  /** Sandboxes whose removal an earlier run began and did not finish, by its journal. */
  readonly unfinished?: ReadonlySet<string>;
  /** Manual classes that the agent's policy allows to heal. */
  readonly consented?: ReadonlySet<string>;
  /** `--no-kick`: leave pods that crashed for want of what is healed to their own back-off. */
  readonly noKick?: boolean;
}

/** One run never touches more: a node with more findings than this needs an operator first. */
export const DEFAULT_CAP = 2000;

/** Kinds of steps that neither the runtime nor any plugin notices. */
const MOVES = new Set(["quarantine-file", "drop-empty-lease"]);

interface Capped {
  readonly actions: readonly PlannedAction[];
  readonly overCap: readonly PlannedAction[];
}

/**
 * Keeps the first N, in order. Files that are only moved aside do not count: twenty thousand of them are a minute's
 * work and no load on anybody, and stopping half way would make the operator start over ten times.
 */
export function capped(actions: readonly PlannedAction[], cap: number): Capped {
  const kept: PlannedAction[] = [];
  const overCap: PlannedAction[] = [];
  let counted = 0;
  for (const action of actions) {
    const counts = action.steps.some(({ kind }) => !MOVES.has(kind));
    if (counts && counted >= cap) overCap.push(action);
    else kept.push(action);
    if (counts) counted++;
  }
  return { actions: kept, overCap };
}

/** No node that runs this was set up before; an earlier time comes from a clock without battery. */
export const EARLIEST_SANE = new Date("2020-01-01T00:00:00Z");
/** The runtime stamps a sandbox a moment before unghost reads the clock. */
const SLACK_MS = 5000;

/** Why the wall clock cannot be believed. */
export type ClockDoubt =
  | { readonly kind: "implausible"; readonly now: Date }
  | { readonly kind: "behind-sandbox"; readonly now: Date; readonly newestSandbox: Date };

/** undefined without a doubt. */
export function doubtAboutClock({ snapshot, sandboxes }: NodeView): ClockDoubt | undefined {
  const now = snapshot.observedAt;
  if (now < EARLIEST_SANE) return { kind: "implausible", now };
  const created = sandboxes.filter(({ createdAt }) => createdAt !== ZERO_TIME);
  const newestMs = Math.max(...created.map(({ createdAt }) => Number(createdAt / 1_000_000n)));
  if (newestMs <= now.getTime() + SLACK_MS) return undefined;
  return { kind: "behind-sandbox", now, newestSandbox: new Date(newestMs) };
}

export function clockDoubtInWords(doubt: ClockDoubt): string {
  const now = doubt.now.toISOString();
  if (doubt.kind === "implausible") return `the clock shows ${now}, which is implausible: set it, then heal again`;
  const newest = doubt.newestSandbox.toISOString();
  return `the clock shows ${now}, and a sandbox is dated ${newest}: set the clock, then heal again`;
}
