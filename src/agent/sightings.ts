import type { NodeReport } from "../report/node-report.ts";
import type { Moment } from "./policy/ledger.ts";
import type { Sighting, Standing } from "./state.ts";

export interface Sighted {
  readonly sightings: readonly Sighting[];
  readonly appeared: readonly Sighting[];
  readonly gone: readonly Sighting[];
}

export const UNDECIDED: Standing = { kind: "waiting", because: "it is next to be decided upon" };

/**
 * What stands now, each with the moment of its first sight. A look that could not see the runtime takes nothing off:
 * what it did not find may still be there. Neither does one in the middle of a healing for what is being healed.
 */
export function updateSightings(before: readonly Sighting[], report: NodeReport, now: Moment): Sighted {
  const known = new Map(before.map((sighting) => [sighting.finding.id, sighting]));
  const found = new Set(report.findings.map(({ id }) => id));
  const seen = report.findings.map((finding): Sighting => {
    const earlier = known.get(finding.id);
    if (earlier !== undefined) return { ...earlier, finding };
    return { finding, firstSeenAt: now.wallClock, firstSeenMs: now.ms, standing: UNDECIDED, attempts: 0 };
  });
  const missing = before.filter(({ finding }) => !found.has(finding.id));
  const isKept = ({ standing }: Sighting): boolean => !report.runtime.reachable || standing.kind === "healing";
  return {
    sightings: [...seen, ...missing.filter(isKept)],
    appeared: seen.filter(({ finding }) => !known.has(finding.id)),
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
