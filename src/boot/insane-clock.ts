import { EARLIEST_SANE } from "../plan/clock.ts";
import { valueOr } from "../snapshot/source.ts";
import { type Snapshot, ZERO_TIME } from "../snapshot/types.ts";

/** A second of difference is a busy machine, not a clock step. */
const SLACK_MS = 60_000;

/** Whether the wall clock is before what the runtime's own records say has already happened. */
export function clockIsInsane(snapshot: Snapshot): boolean {
  const now = snapshot.observedAt.getTime();
  if (now < EARLIEST_SANE.getTime()) return true;
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  return sandboxes.some(({ createdAt }) => createdAt !== ZERO_TIME && Number(createdAt / 1_000_000n) > now + SLACK_MS);
}
