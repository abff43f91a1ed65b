import { podWords } from "../../report/pending.ts";
import { count, naturalOrder } from "../../report/words.ts";
import type { WireSighting } from "./wire.ts";

export type Group = ReturnType<typeof groupsOf>[number];

type Severity = WireSighting["finding"]["severity"];

const WORST_FIRST: readonly Severity[] = ["critical", "warning", "info"];

/** Findings by class: what is given up first, then the worst, then the most. */
export function groupsOf(sightings: readonly WireSighting[]) {
  const groups = [...Map.groupBy(sightings, ({ finding }) => finding.class)].map(([classId, members]) => ({
    classId,
    sightings: members.toSorted(
      (one, other) =>
        Number(isGivenUp(other)) - Number(isGivenUp(one)) ||
        naturalOrder(podWords(one.finding.subject.pod), podWords(other.finding.subject.pod)) ||
        naturalOrder(one.finding.id, other.finding.id),
    ),
    severity: worst(members),
  }));
  return groups.toSorted(
    (one, other) =>
      Number(other.sightings.some(isGivenUp)) - Number(one.sightings.some(isGivenUp)) ||
      WORST_FIRST.indexOf(one.severity) - WORST_FIRST.indexOf(other.severity) ||
      other.sightings.length - one.sightings.length,
  );
}

/** What cannot run or end because of what was found, each once, and how many findings block it. */
export function blockedBy(sightings: readonly WireSighting[]) {
  const blocked = Map.groupBy(
    sightings.flatMap(({ finding }) => blocksInWords(finding)),
    (what) => what,
  );
  return [...blocked]
    .map(([what, findings]) => ({ what, by: findings.length }))
    .toSorted((one, other) => naturalOrder(one.what, other.what));
}

export function blockedPods(sightings: readonly WireSighting[]): number {
  return new Set(sightings.flatMap(({ finding: { blockedPods: pods = [] } }) => pods.map(podWords))).size;
}

/** The pods by name where they are known; what blocks something else in the report's own words. */
function blocksInWords({ blocks, blockedPods: pods = [], blockedAddresses = 0 }: WireSighting["finding"]) {
  if (pods.length > 0) return pods.map((pod) => `${podWords(pod)} cannot start`);
  if (blockedAddresses > 0) return [`${count(blockedAddresses, "IP address", "IP addresses")} not available`];
  return blocks;
}

function isGivenUp({ standing }: WireSighting): boolean {
  return standing.kind === "given-up";
}

function worst(sightings: readonly WireSighting[]): Severity {
  return WORST_FIRST.find((severity) => sightings.some(({ finding }) => finding.severity === severity)) ?? "info";
}
