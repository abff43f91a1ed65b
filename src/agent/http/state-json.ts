import type { AgentState } from "../state.ts";

/** The state as the page reads it: dates as ISO strings, maps as plain objects. */
export function stateJson(state: AgentState): string {
  return JSON.stringify(state, (_key, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
}
