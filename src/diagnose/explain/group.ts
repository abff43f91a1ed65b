import { searchWords } from "../../logs/answer.ts";
import { isCut } from "../../logs/text.ts";
import type { NamedPod } from "../../node/types/ids.ts";
import type { Answer, Failure } from "./answer.ts";
import type { Match } from "./recognise.ts";
import type { Topic } from "./topics.ts";

/** Records with one answer: of one class, of one failing operation and cause, or of one trouble known elsewhere. */
export type Group = ClassGroup | FailureGroup | TopicGroup;

interface Counted {
  readonly count: number;
  readonly pods: readonly NamedPod[];
  readonly sandboxIds: readonly string[];
  /** The text ends before its end. */
  readonly isCut: boolean;
}

export interface ClassGroup extends Counted {
  readonly kind: "class";
  readonly class: string;
  readonly confidence: number;
  /** Other classes that the same lines may belong to, most likely first. */
  readonly alternatives: readonly string[];
  readonly decides?: string;
}

export interface FailureGroup extends Counted {
  readonly kind: "failure";
  readonly failure: Failure;
}

export interface TopicGroup extends Counted {
  readonly kind: "topic";
  readonly topic: Topic;
  readonly failure?: Failure;
}

interface Tally {
  count: number;
  /** Of all answers of the group the one with the highest confidence. */
  surest: Answer;
  readonly pods: Map<string, NamedPod>;
  readonly sandboxIds: Set<string>;
}

/** More names would not help; the count stays exact. */
const MAX_NAMES = 1_000;
/** A text full of different failures is not summed up any more. */
const MAX_GROUPS = 200;

export function grouper() {
  const tallies = new Map<string, Tally>();

  function add(answer: Answer): void {
    const key = keyOf(answer);
    const known = tallies.get(key);
    if (known === undefined && tallies.size >= MAX_GROUPS) return;
    const tally = known ?? { count: 0, surest: answer, pods: new Map(), sandboxIds: new Set() };
    tallies.set(key, tally);
    tally.count += 1;
    if (confidenceOf(answer) > confidenceOf(tally.surest)) tally.surest = answer;
    const { pod, sandboxId } = answer.matches[0] ?? answer.failure ?? {};
    if (pod && tally.pods.size < MAX_NAMES) tally.pods.set(`${pod.namespace}/${pod.name}`, pod);
    if (sandboxId !== undefined && tally.sandboxIds.size < MAX_NAMES) tally.sandboxIds.add(sandboxId);
  }

  /** What explains most comes first: causes before symptoms unless these are far more frequent. */
  function groups(): readonly Group[] {
    return [...tallies.values()].toSorted((one, other) => scoreOf(other) - scoreOf(one)).map(toGroup);
  }

  return { add, groups };
}

function keyOf({ matches: [first], failure, topic }: Answer): string {
  if (first !== undefined) return first.class;
  if (topic !== undefined) return `topic ${topic.id}`;
  return ["failure", failure?.operation, failure?.plugin, searchWords(failure?.cause ?? "")].join(" ");
}

function confidenceOf({ matches: [first] }: Answer): number {
  return first?.confidence ?? 0;
}

/** A class before a failure without one, and that before what has nothing to do with sandboxes. */
const RANKS = { class: 2_000, failure: 1_000, topic: 0 } as const;

function scoreOf({ surest, count }: Tally): number {
  const { matches, weight, topic, failure } = surest;
  const often = Math.log2(1 + count);
  if (matches.length > 0) return RANKS.class + often * (weight - 2) * confidenceOf(surest);
  if (topic !== undefined) return RANKS.topic + often;
  return RANKS.failure + often * (failure?.cause === undefined ? 1 : 3);
}

function toGroup({ surest, count, ...names }: Tally): Group {
  const { matches, topic, failure } = surest;
  const [first, ...others] = matches;
  const pods = [...names.pods.values()];
  const sandboxIds = [...names.sandboxIds];
  const counted = { count, pods, sandboxIds, isCut: isCut((first ?? failure)?.line ?? "") };
  if (first !== undefined) return { kind: "class", ...classIn(first, others), ...counted };
  if (topic !== undefined) return { kind: "topic", topic, failure, ...counted };
  if (failure !== undefined) return { kind: "failure", failure, ...counted };
  throw new Error("an answer without a class, a topic and a failure is no answer");
}

function classIn(first: Match, others: readonly Match[]) {
  const { class: id, confidence, decides } = first;
  return { class: id, confidence, decides, alternatives: others.map((match) => match.class) };
}
