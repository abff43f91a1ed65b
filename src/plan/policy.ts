import type { DiagnosisPolicy } from "../evidence/policy.ts";

/** How far this run may go. */
export interface HealPolicy extends DiagnosisPolicy {
  /** Sweep everything that is proven dead, finished pods included. */
  readonly allDead: boolean;
  /** The most subjects one run touches; what is over it is left for the next. */
  readonly cap: number;
  /** Sandboxes whose removal an earlier run began and did not finish, by its journal. */
  readonly unfinished?: ReadonlySet<string>;
  /** Classes that need a person by their nature, and for which the agent's policy is that person's standing consent. */
  readonly consented?: ReadonlySet<string>;
  /** `--no-kick`: leave pods that crashed for want of what is healed to their own back-off. */
  readonly noKick?: boolean;
}

/** One run never touches more: a node that has more than this wrong needs a person first. */
export const DEFAULT_CAP = 2000;
