import type { WireSighting } from "./wire.ts";

export interface Group {
  readonly classId: string;
  readonly sightings: readonly WireSighting[];
  readonly severity: Severity;
}

type Severity = WireSighting["finding"]["severity"];

const WORST_FIRST: readonly Severity[] = ["critical", "warning", "info"];

/** Findings by class: what needs a person first, then the worst, then the most. */
export function groupsOf(sightings: readonly WireSighting[]): readonly Group[] {
  const groups = [...Map.groupBy(sightings, ({ finding }) => finding.class)].map(([classId, members]) => ({
    classId,
    sightings: members.toSorted((one, other) => Number(isGivenUp(other)) - Number(isGivenUp(one))),
    severity: worst(members),
  }));
  return groups.toSorted(
    (one, other) =>
      Number(other.sightings.some(isGivenUp)) - Number(one.sightings.some(isGivenUp)) ||
      WORST_FIRST.indexOf(one.severity) - WORST_FIRST.indexOf(other.severity) ||
      other.sightings.length - one.sightings.length,
  );
}

export interface Blocked {
  readonly what: string;
  /** How many findings block it. */
  readonly by: number;
}

/** What cannot run or end because of what was found, each once. */
export function blockedBy(sightings: readonly WireSighting[]): readonly Blocked[] {
  const blocked = Map.groupBy(
    sightings.flatMap(({ finding }) => finding.blocks),
    (what) => what,
  );
  return [...blocked].map(([what, findings]) => ({ what, by: findings.length }));
}

function isGivenUp({ standing }: WireSighting): boolean {
  return standing.kind === "given-up";
}

function worst(sightings: readonly WireSighting[]): Severity {
  return WORST_FIRST.find((severity) => sightings.some(({ finding }) => finding.severity === severity)) ?? "info";
}
