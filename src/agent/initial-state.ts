import type { AgentState, TimelinePoint } from "./state.ts";

/** What is known before the first scan. */
export function initialState(node: string, version: string, timeline: readonly TimelinePoint[]): AgentState {
  return {
    node,
    version,
    startedAt: new Date(),
    sightings: [],
    heals: [],
    totals: {
      heals: new Map(),
      refusals: new Map(),
      crashRestarts: 0,
      kernelStalls: 0,
      scans: 0,
      scansFailed: 0,
      cniFilesSynced: 0,
    },
    breaker: { open: false },
    timeline,
  };
}
