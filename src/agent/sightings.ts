import type { NodeReport } from "../report/node-report.ts";
import { subjectKey } from "./being-healed.ts";
import type { Moment } from "./policy/ledger.ts";
import type { Sighting, Standing } from "./state.ts";

export interface Sighted {
  readonly sightings: readonly Sighting[];
  readonly appeared: readonly Sighting[];
  readonly gone: readonly Sighting[];
}

export const UNDECIDED: Standing = { kind: "waiting", message: "not decided yet" };

/**
 * The current findings, each with the time it was first seen. A subject that another class explains now is still the same
 * sighting. A scan that could not reach the runtime removes nothing: what it did not find may still exist. Neither
 * does one in the middle of a healing for what is being healed.
 */
export function updateSightings(before: readonly Sighting[], report: NodeReport, now: Moment): Sighted {
  const known = new Map(before.map((sighting) => [subjectKey(sighting.finding), sighting]));
  const found = new Set(report.findings.map(subjectKey));
  const seen = report.findings.map((finding): Sighting => {
    const earlier = known.get(subjectKey(finding));
    if (earlier !== undefined) return { ...earlier, finding };
    return { finding, firstSeenAt: now.wallClock, firstSeenMs: now.ms, standing: UNDECIDED, attempts: 0 };
  });
  const missing = before.filter(({ finding }) => !found.has(subjectKey(finding)));
  const isKept = ({ standing }: Sighting): boolean => !report.runtime.reachable || standing.kind === "healing";
  return {
    sightings: [...seen, ...missing.filter(isKept)],
    appeared: seen.filter(({ finding }) => !known.has(subjectKey(finding))),
    gone: missing.filter((sighting) => !isKept(sighting)),
  };
}

/** Gives each its standing where there is one; the others keep theirs. */
export function withStandings(
  sightings: readonly Sighting[],
  standings: ReadonlyMap<string, Pick<Sighting, "standing" | "attempts">>,
): readonly Sighting[] {
  return sightings.map((sighting) => ({ ...sighting, ...standings.get(sighting.finding.id) }));
}
