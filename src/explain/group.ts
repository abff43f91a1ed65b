import type { NamedPod } from "../node/types/ids.ts";
import type { Match } from "./recognise.ts";

/** All records of one class. */
export interface Group {
  readonly class: string;
  readonly confidence: number;
  readonly count: number;
  readonly pods: readonly NamedPod[];
  readonly sandboxIds: readonly string[];
  /** Other classes that the same lines may belong to, most likely first. */
  readonly alternatives: readonly string[];
  readonly decides?: string;
}

/** Groups any number of records by their first class. */
export interface Grouper {
  add(record: readonly Match[]): void;
  /** The most frequent first. */
  groups(): readonly Group[];
}

interface Tally {
  count: number;
  surest: Match;
  alternatives: readonly string[];
  readonly pods: Map<string, NamedPod>;
  readonly sandboxIds: Set<string>;
}

/** More names would not help; the count stays exact. */
const MAX_NAMES = 1_000;

export function grouper(): Grouper {
  const tallies = new Map<string, Tally>();

  function add([first, ...others]: readonly Match[]): void {
    if (first === undefined) return;
    const tally = tallies.get(first.class) ?? newTally(first);
    tallies.set(first.class, tally);
    tally.count += 1;
    if (tally.count === 1 || first.confidence > tally.surest.confidence) {
      tally.surest = first;
      tally.alternatives = others.map((match) => match.class);
    }
    const { pod, sandboxId } = first;
    if (pod && tally.pods.size < MAX_NAMES) tally.pods.set(`${pod.namespace}/${pod.name}`, pod);
    if (sandboxId !== undefined && tally.sandboxIds.size < MAX_NAMES) tally.sandboxIds.add(sandboxId);
  }

  function groups(): readonly Group[] {
    return [...tallies.values()].map(toGroup).toSorted((one, other) => other.count - one.count);
  }

  return { add, groups };
}

function newTally(first: Match): Tally {
  return { count: 0, surest: first, alternatives: [], pods: new Map(), sandboxIds: new Set() };
}

function toGroup({ count, surest, alternatives, pods, sandboxIds }: Tally): Group {
  return {
    class: surest.class,
    confidence: surest.confidence,
    count,
    pods: [...pods.values()],
    sandboxIds: [...sandboxIds],
    alternatives,
    decides: surest.decides,
  };
}
