import type { WireState } from "./wire.ts";

/**
 * By how much this machine's clock is ahead of the node's. A scan that arrives while one listens was finished just now:
 * both clocks are then known for one moment. The state that was there when the page was opened is no such moment.
 */
export function clockAheadMs(before: WireState | undefined, state: WireState, arrivedMs: number): number | undefined {
  const { scan } = state;
  if (scan === undefined || before?.scan === undefined) return undefined;
  if (before.startedAt !== state.startedAt || before.scan.report.observedAt === scan.report.observedAt)
    return undefined;
  return arrivedMs - Date.parse(scan.report.observedAt) - scan.seconds * 1000;
}
