import type { NodeView } from "./view.ts";

/** Between the first trace of a creation and its record lie milliseconds, and under heavy load seconds. */
const SETTLE_MS = 30_000;

/** Old enough that it cannot be a creation which has not got to its record yet. `--min-age 0s` waives the wait. */
export function isSettled(since: Date, { snapshot, policy }: NodeView): boolean {
  return snapshot.observedAt.getTime() - since.getTime() >= Math.min(SETTLE_MS, policy.minAgeMs);
}
