import type { NodeView } from "../classes/view.ts";
import { ZERO_TIME } from "../snapshot/types.ts";

/** No node that runs this was set up before; a clock that says so has lost its battery. */
export const EARLIEST_SANE = new Date("2020-01-01T00:00:00Z");
/** The runtime stamps a sandbox a moment before unghost reads the clock. */
const SLACK_MS = 5000;

/** Why the wall clock cannot be believed; undefined while nothing speaks against it. */
export function doubtAboutClock({ snapshot, sandboxes }: NodeView): string | undefined {
  const { observedAt } = snapshot;
  const now = observedAt.toISOString();
  if (observedAt < EARLIEST_SANE) return `the clock says ${now}, which cannot be: set it right, then heal again`;
  const created = sandboxes.filter(({ createdAt }) => createdAt !== ZERO_TIME);
  const newestMs = Math.max(...created.map(({ createdAt }) => Number(createdAt / 1_000_000n)));
  if (newestMs <= observedAt.getTime() + SLACK_MS) return undefined;
  const newest = new Date(newestMs).toISOString();
  return `the clock says ${now}, and a sandbox is dated ${newest}: set the clock right, then heal again`;
}
