import { valueOr } from "../snapshot/source.ts";
import { type Snapshot, ZERO_TIME } from "../snapshot/types.ts";

/** No node has run this program earlier: a clock that says so has lost its battery. */
const EARLIEST = Date.UTC(2024, 0, 1);

/** A second of difference is a busy machine, not a clock step. */
const SLACK_MS = 60_000;

/** Whether the wall clock is before what the runtime's own records say has already happened. */
export function clockIsInsane(snapshot: Snapshot): boolean {
  const now = snapshot.observedAt.getTime();
  if (now < EARLIEST) return true;
  const sandboxes = valueOr(snapshot.cri, undefined)?.sandboxes ?? [];
  return sandboxes.some(({ createdAt }) => createdAt !== ZERO_TIME && Number(createdAt / 1_000_000n) > now + SLACK_MS);
}
