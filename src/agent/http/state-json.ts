import type { AgentState } from "../state.ts";
import { runsOf } from "../timeline-runs.ts";

/** The state as the page reads it: dates as ISO strings, maps as plain objects, the timeline in stretches. */
export function stateJson(state: AgentState): string {
  return JSON.stringify({ ...state, timeline: runsOf(state.timeline) }, (_key, value: unknown) =>
    value instanceof Map ? Object.fromEntries(value) : value,
  );
}
