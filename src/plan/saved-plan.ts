import { createHash } from "node:crypto";
import type { Plan, PlannedAction } from "./plan.ts";

/** Equal if the same steps are planned for the same findings, with the same proofs and the same reasons. */
export function planDigest({ actions }: Plan): string {
  return `sha256:${createHash("sha256").update(actions.map(keyOf).toSorted().join("\n")).digest("hex")}`;
}

/** What of a later plan is also in this one, unchanged. */
export function unchangedSince(before: Plan): (now: Plan) => Plan {
  const known = new Set(before.actions.map(keyOf));
  return (now) => ({ ...now, actions: now.actions.filter((action) => known.has(keyOf(action))) });
}

function keyOf({ finding, steps, followUps = [], reason }: PlannedAction): string {
  const parts = [finding.id, steps, followUps, reason.code];
  return JSON.stringify(parts, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
}
