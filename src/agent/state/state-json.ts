import { classById } from "../../classes/index.ts";
import type { AgentState } from "./state.ts";
import { runsOf } from "./timeline-runs.ts";

/** Title and meaning of a failure class. */
export interface ClassWords {
  readonly code: string;
  readonly title: string;
  readonly explanation: string;
}

/**
 * The state as JSON for the page: dates as ISO strings, maps as plain objects, the timeline run-length encoded, and the
 * texts of the classes that occur, because all of them would be a third of the page.
 */
export function stateJson(state: AgentState): string {
  const shown = { ...state, timeline: runsOf(state.timeline), classWords: wordsFor(state) };
  return JSON.stringify(shown, (_key, value: unknown) => (value instanceof Map ? Object.fromEntries(value) : value));
}

function wordsFor({ sightings, heals, runs = [] }: AgentState): Readonly<Record<string, ClassWords>> {
  const healed = [...heals, ...runs.flatMap(({ items }) => items)];
  const ids = new Set([...sightings.map(({ finding }) => finding.class), ...healed.map((one) => one.class)]);
  return Object.fromEntries(
    [...ids].flatMap((id) => {
      const known = classById(id);
      if (known === undefined) return [];
      const { code, title, explanation } = known;
      return [[id, { code, title, explanation }]];
    }),
  );
}
