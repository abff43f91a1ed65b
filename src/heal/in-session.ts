import type { Diagnosis } from "../diagnose/diagnose.ts";
import type { Plan } from "../plan/plan.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { type Outcome, ok } from "./outcome.ts";
import { type HealSession, openHealSession, type SessionOptions } from "./session.ts";

/** What was seen, and what it means. */
export interface Seen {
  readonly snapshot: Snapshot;
  readonly diagnosis: Diagnosis;
}

export interface Planned extends Seen {
  readonly plan: Plan;
}

export interface InSessionOptions {
  readonly session: SessionOptions;
  readonly look: () => Promise<Seen>;
  readonly plan: (diagnosis: Diagnosis) => Plan;
}

/** Whoever has to wait for the lock waits longer than this; by then another run may have changed what was seen. */
const WAITED_MS = 150;

/** Runs `work` with the right to change the node, and on a plan that others have not made stale meanwhile. */
export async function inSession<T>(
  shown: Planned,
  options: InSessionOptions,
  work: (session: HealSession, now: Planned) => Promise<T>,
): Promise<Outcome<T>> {
  const askedAt = performance.now();
  const opened = await openHealSession(options.session);
  if (!opened.ok) return opened;
  const session = opened.value;
  try {
    const isStale = session.recoveries.length > 0 || performance.now() - askedAt > WAITED_MS;
    return ok(await work(session, isStale ? await lookedAgain(options) : shown));
  } finally {
    await session.close();
  }
}

async function lookedAgain({ look, plan }: InSessionOptions): Promise<Planned> {
  const seen = await look();
  return { ...seen, plan: plan(seen.diagnosis) };
}
