import type { NamedPod } from "../../node/types/ids.ts";
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

interface Tally {
  count: number;
  surest: Match;
  alternatives: readonly string[];
  readonly pods: Map<string, NamedPod>;
  readonly sandboxIds: Set<string>;
}

/** More names would not help; the count stays exact. */
const MAX_NAMES = 1_000;

/** Groups any number of records by their first class. */
export function grouper() {
  const tallies = new Map<string, Tally>();

  function add([first, ...others]: readonly Match[]): void {
    if (first === undefined) return;
    const tally = tallies.get(first.class) ?? {
      count: 0,
      surest: first,
      alternatives: [],
      pods: new Map(),
      sandboxIds: new Set(),
    };
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

  /** The most frequent first. */
  function groups(): readonly Group[] {
    return [...tallies.values()].map(toGroup).toSorted((one, other) => other.count - one.count);
  }

  return { add, groups };
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

const ANY = "[a-z0-9](?:[a-z0-9.-]{0,252})";
const ID = "[0-9a-f]{12,64}(?![0-9a-z_-])";

/** In this order: the holder of a lock or the object of a call comes before other ids in the line. */
const SANDBOX_IDS: readonly RegExp[] = [
  new RegExp(`sandbox name \\S{1,400}:? (?:name \\S{1,400} )?is reserved for (${ID})`),
  new RegExp(`\\(([0-9a-f]{64})\\)`),
  new RegExp(`in use by (?:sandbox|container) (${ID})`),
  new RegExp(`(?:for|within|of|in|pod|stop|stopping|failed) sandbox (?:container |id |task )?(${ID})`),
  new RegExp(`(?:stop|remove)podsandbox (?:for )?(${ID})`),
  new RegExp(`podsandboxid[=:]{1,2}\\s?(?:\\{type:\\S{1,20},id:)?(${ID})`),
  new RegExp(`sandboxid[=: (]{1,3}(${ID})`),
  new RegExp(`sandbox (?:container )?(${ID})`),
  new RegExp(`k8s_pod_infra_container_id=(${ID})`),
  new RegExp(`containerid[=:(]{1,2}(${ID})`),
  new RegExp(`for id (${ID})`),
  new RegExp(`_${ANY}/(${ID}) from network`),
  new RegExp(`-([0-9a-f]{64})-\\w{1,15}\\b`),
  new RegExp(`/(?:multus|flannel|results)/\\S{0,120}?([0-9a-f]{64})`),
];

const NAMESPACE = `(?<namespace>${ANY})`;
const NAME = `(?<name>${ANY})`;
const UID = "(?<uid>[0-9a-z-]{8,40})";
const ATTEMPT = "(?<attempt>\\d{1,9})";

const PODS: readonly RegExp[] = [
  new RegExp(`podsandboxmetadata\\{name:${NAME},uid:${UID},namespace:${NAMESPACE},attempt:${ATTEMPT},`),
  new RegExp(`k8s_pod_${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}`),
  new RegExp(`sandbox name /?${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}(?![0-9a-z_])`),
  new RegExp(`container name /?(?:k8s_)?${ANY}_${NAME}_${NAMESPACE}_${UID}_\\d{1,9}(?![0-9a-z_])`),
  new RegExp(`(?:sandbox|pod name) k8s_${NAME}_${NAMESPACE}_${UID}_${ATTEMPT}`),
  new RegExp(`k8s_${ANY}_${NAME}_${NAMESPACE}_${UID}_\\d{1,9}`),
  new RegExp(`\\bname ${NAME}_${NAMESPACE}_${UID}_${ATTEMPT} is reserved`),
  new RegExp(`k8s_pod_namespace[=\\s]${NAMESPACE}[;\\]\\s]{1,3}\\[?k8s_pod_name[=\\s]${NAME}`),
  new RegExp(`\\b${NAME}_${NAMESPACE}\\(${UID}\\)`),
  new RegExp(`\\bpod=${NAMESPACE}/${NAME}`),
  new RegExp(`\\[${NAMESPACE}/${NAME}(?:/${UID})?[:\\]]`),
  new RegExp(`error (?:deleting|adding) ${NAMESPACE}_${NAME}/`),
  new RegExp(`(?:teardown|set up|setup|for) pod ${NAME}_${NAMESPACE}(?![0-9a-z_.-])`),
];

/**
 * The sandbox and the pod in a line that normalise() returned, if any. Ids may be short (crictl prints 13 digits).
 */
export function subjectOf(text: string): Pick<Match, "sandboxId" | "pod"> {
  return { sandboxId: firstMatch(SANDBOX_IDS, text)?.[1], pod: podIn(firstMatch(PODS, text)?.groups) };
}

function firstMatch(patterns: readonly RegExp[], text: string): RegExpExecArray | undefined {
  for (const pattern of patterns) {
    const match = pattern.exec(text);
    if (match !== null) return match;
  }
  return undefined;
}

function podIn(groups: Readonly<Record<string, string | undefined>> = {}): NamedPod | undefined {
  const { namespace, name, uid, attempt } = groups;
  if (namespace === undefined || name === undefined) return undefined;
  return { namespace, name, uid, attempt: attempt === undefined ? undefined : Number(attempt) };
}
