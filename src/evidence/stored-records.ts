import type { SandboxMetadata } from "../node/types/runtime.ts";
import type { StoredRecords } from "../node/types/snapshot.ts";
import type { Evidence } from "./finding.ts";

/** What records that the runtime refuses are in the way of. */
export const NEXT_START = "the next start of the runtime";
/** How many of a kind are listed by name; the rest is counted. */
export const MAX_LISTED = 10;

export function metadataEvidence(facts: readonly string[]): readonly Evidence[] {
  const more = facts.length > MAX_LISTED ? [`and ${facts.length - MAX_LISTED} more`] : [];
  return [...facts.slice(0, MAX_LISTED), ...more].map((fact) => ({ source: "metadata file", fact }));
}

export function createdInWords(createdAt: Date | undefined): string {
  return createdAt === undefined ? "of unknown age" : `created ${createdAt.toISOString()}`;
}

/** By id, each once: a 2.x keeps most of them in both of its stores. A record without metadata is not loaded. */
export function storedSandboxes(
  stored: Pick<StoredRecords, "sandboxes" | "records">,
): ReadonlyMap<string, SandboxMetadata> {
  const all = [...stored.sandboxes, ...stored.records];
  return new Map(all.flatMap(({ id, sandbox }) => (sandbox === undefined ? [] : [[id, sandbox]])));
}
