import type { NodeView } from "../evidence/view.ts";
import { ZERO_TIME } from "../snapshot/types.ts";

/** No node that runs this was set up before; a clock that says so has lost its battery. */
export const EARLIEST_SANE = new Date("2020-01-01T00:00:00Z");
/** The runtime stamps a sandbox a moment before unghost reads the clock. */
const SLACK_MS = 5000;

/** Why the wall clock cannot be believed. */
export type ClockDoubt =
  | { readonly kind: "implausible"; readonly now: Date }
  | { readonly kind: "behind-sandbox"; readonly now: Date; readonly newestSandbox: Date };

/** undefined while nothing speaks against it. */
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
  if (doubt.kind === "implausible") return `the clock says ${now}, which cannot be: set it right, then heal again`;
  const newest = doubt.newestSandbox.toISOString();
  return `the clock says ${now}, and a sandbox is dated ${newest}: set the clock right, then heal again`;
}
