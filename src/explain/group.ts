import type { Match } from "./recognise.ts";
import type { LogPod } from "./subject.ts";

/** All records of one class, as people want to read them. */
export interface Group {
  readonly class: string;
  readonly confidence: number;
  readonly count: number;
  readonly pods: readonly LogPod[];
  readonly sandboxIds: readonly string[];
  /** What else the same lines may stand for, likeliest first. */
  readonly alternatives: readonly string[];
  readonly decides?: string;
  readonly example: string;
}

/** Groups records by the class that comes first in each; the most frequent group comes first. */
export function groupByClass(records: Iterable<readonly Match[]>): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const [first, ...others] of records) {
    if (!first) continue;
    groups.set(first.class, add(groups.get(first.class), first, others));
  }
  return [...groups.values()].toSorted((one, other) => other.count - one.count);
}

function add(group: Group | undefined, first: Match, others: readonly Match[]): Group {
  const surer = group === undefined || first.confidence > group.confidence;
  const decides = surer ? first.decides : group.decides;
  return {
    class: first.class,
    confidence: surer ? first.confidence : group.confidence,
    count: (group?.count ?? 0) + 1,
    pods: withPod(group?.pods ?? [], first.pod),
    sandboxIds: withId(group?.sandboxIds ?? [], first.sandboxId),
    alternatives: surer ? others.map((match) => match.class) : group.alternatives,
    ...(decides === undefined ? {} : { decides }),
    example: surer ? first.line : group.example,
  };
}

function withPod(pods: readonly LogPod[], pod: LogPod | undefined): readonly LogPod[] {
  if (pod === undefined) return pods;
  const known = pods.some((one) => one.namespace === pod.namespace && one.name === pod.name);
  return known ? pods : [...pods, pod];
}

function withId(ids: readonly string[], id: string | undefined): readonly string[] {
  return id === undefined || ids.includes(id) ? ids : [...ids, id];
}
