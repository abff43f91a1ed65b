import type { PlannedAction } from "./plan.ts";

/** Kinds of steps that neither the runtime nor any plugin notices. */
const MOVES = new Set(["quarantine-file", "drop-empty-lease"]);

export interface Capped {
  readonly actions: readonly PlannedAction[];
  readonly overCap: readonly PlannedAction[];
}

/**
 * Keeps the first so many, in order. Files that are only moved aside do not count: twenty thousand of them are a minute's
 * work and no load on anybody, and stopping half way would make the person start over ten times.
 */
export function capped(actions: readonly PlannedAction[], cap: number): Capped {
  const kept: PlannedAction[] = [];
  const overCap: PlannedAction[] = [];
  let counted = 0;
  for (const action of actions) {
    const counts = action.steps.some(({ kind }) => !MOVES.has(kind));
    if (counts && counted >= cap) overCap.push(action);
    else kept.push(action);
    if (counts) counted++;
  }
  return { actions: kept, overCap };
}
