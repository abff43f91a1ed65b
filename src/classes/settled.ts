import type { NodeView } from "./view.ts";

/** Between the first trace of a creation and its record lie milliseconds, and under heavy load seconds. */
const SETTLE_MS = 30_000;

/** Old enough that it cannot be a creation which has not got to its record yet. `--min-age 0s` waives the wait. */
export function isSettled(since: Date, view: NodeView): boolean {
  return isOldEnough((view.snapshot.observedAt.getTime() - since.getTime()) / 1000, view);
}

/** As isSettled, for what knows its age by the monotonic clock. */
export function isOldEnough(ageSeconds: number, { policy }: NodeView): boolean {
  return ageSeconds * 1000 >= Math.min(SETTLE_MS, policy.minAgeMs);
}
