import { classById } from "../../classes/index.ts";
import { sha256Of } from "../../heal/quarantine/file-identity.ts";
import { printable } from "../../host/text.ts";
import { retryWords } from "../../report/node-state.ts";
import { apiTime } from "../../report/node-summary.ts";
import { podWords } from "../../report/pending.ts";
import { countByKind, fullStop, sentence } from "../../report/words.ts";
import { type AgentEvent, type HealRecord, type RefusalReason, retriesOf, type Sighting } from "../state/state.ts";
import { byClass, degradedMessage } from "./condition.ts";

type EventReason = keyof typeof WORDS;

type EventPod = NonNullable<HealRecord["pod"]>;

/** A change of one ghost for which an event is created. */
export interface PublishedChange {
  readonly reason: EventReason;
  /** The key for counting, beside reason and object: a class, or all of them. */
  readonly class: string;
  readonly message: string;
  /** Missing for the node. */
  readonly pod?: EventPod;
}

/** Refusals that need attention; waiting for an age, a window or a slot is normal. */
const PUBLISHED_REFUSALS: ReadonlySet<RefusalReason> = new Set(["paused", "opted-out", "breaker", "guard", "disk"]);

/** Events are counted by class: failures without a finding have this one. */
const DEGRADED = "degraded";

export function publishedChange(event: AgentEvent): PublishedChange | undefined {
  switch (event.kind) {
    case "detected":
      return ofSighting("GhostDetected", event.sighting, blocksInWords(event.sighting));
    case "degraded":
      return { reason: "PodsBlocked", class: DEGRADED, message: degradedMessage(event.report) };
    case "healed":
      return ofRecord("GhostHealed", event.record);
    case "heal-failed":
      return ofRecord("GhostHealFailed", event.record, failedAgain(event.sighting));
    case "given-up": {
      const { standing } = event.sighting;
      if (standing.kind !== "given-up") return undefined;
      return ofSighting(
        "GhostHealFailed",
        event.sighting,
        `${sentence(retryWords(retriesOf(event.sighting)) ?? "given up")} ${fullStop(standing.message)} ${standing.next}`,
      );
    }
    case "refused":
      if (event.sighting === undefined || !PUBLISHED_REFUSALS.has(event.reason)) return undefined;
      return ofSighting("GhostHealRefused", event.sighting, `Not touched: ${event.message}`);
    default:
      return undefined;
  }
}

function ofSighting(reason: EventReason, { finding }: Sighting, more: string): PublishedChange {
  const { class: classId, summary, subject } = finding;
  const message = more === "" ? summary : `${fullStop(summary)} ${more}`;
  return { reason, class: classId, message, pod: existingPod(classId, subject.pod) };
}

function ofRecord(reason: EventReason, record: HealRecord, times?: string): PublishedChange {
  const { class: classId, summary, done, reason: why, journalId, pod } = record;
  const text = done === undefined ? summary : `${sentence(done)} Before: ${summary}`;
  const message = [
    why === undefined ? text : `${fullStop(text)} ${why}`,
    ...(times === undefined ? [] : [`(${times})`]),
    ...(journalId === undefined ? [] : [`(journal ${journalId})`]),
  ];
  return { reason, class: classId, message: message.join(" "), pod: existingPod(classId, pod) };
}

/** The failure of this event is not in the journal as it was read before. */
function failedAgain(sighting: Sighting | undefined): string | undefined {
  return retryWords({ times: (sighting?.finding.failedHeals?.times ?? 0) + 1 });
}

function blocksInWords({ finding }: Sighting): string {
  const [first] = finding.blocks;
  return first === undefined ? "" : `Blocked: ${first}`;
}

function existingPod(classId: string, pod: EventPod | undefined): EventPod | undefined {
  if (pod === undefined || classById(classId)?.podIsGone === true) return undefined;
  const { namespace, name, uid } = pod;
  return namespace === "" || name === "" ? undefined : { namespace, name, uid };
}

/** An event to be created, or counted again. */
export interface Draft extends PublishedChange {
  readonly count: number;
}

/** More of a kind than this at the same time become one event. */
const A_FEW = 5;
const ALL_CLASSES = "all";
const MAX_NAMED = 3;

/**
 * The events for changes within a short time: one for each pod, and one per class for the node. After a power cut it is
 * one event for the node and none for its hundred pods.
 */
export function draftsOf(changes: readonly PublishedChange[], mayNamePods: boolean): readonly Draft[] {
  return [...Map.groupBy(changes, ({ reason }) => reason).values()].flatMap((group) => {
    if (group.length > A_FEW || !mayNamePods) return [nodeDraft(group, ALL_CLASSES)];
    const classes = Map.groupBy(group, (one) => one.class);
    const forNode = [...classes].map(([id, ofClass]) => nodeDraft(ofClass, id));
    const forPods = group.filter(({ pod }) => pod !== undefined).map((one) => ({ ...one, count: 1 }));
    return [...forPods, ...forNode];
  });
}

const WORDS = {
  PodsBlocked: "blocked",
  GhostDetected: "detected",
  GhostHealed: "healed",
  GhostHealFailed: "not healed",
  GhostHealRefused: "left alone",
} as const;

function nodeDraft(group: readonly PublishedChange[], classId: string): Draft {
  const [first] = group;
  if (first === undefined) throw new Error("a group has at least one member");
  const { reason } = first;
  const { class: ofClass, message: alone, pod } = first;
  const message =
    group.length > 1
      ? togetherInWords(group, reason)
      : `${ofClass}${pod === undefined ? "" : ` of ${podWords(pod)}`}: ${alone}`;
  return { reason, class: classId, message, count: group.length };
}

function togetherInWords(group: readonly PublishedChange[], reason: EventReason): string {
  const pods = new Set(group.flatMap(({ pod }) => pod ?? []).map(podWords));
  const named = [...pods].toSorted().slice(0, MAX_NAMED).join(", ");
  const such = named === "" ? "" : `; such as ${named}`;
  const kinds = group.map(
    ({ class: id }) => ({ kind: classById(id)?.category === "leak" ? "leak" : "ghost" }) as const,
  );
  return `${countByKind(kinds)} ${WORDS[reason]}: ${byClass(group.map((finding) => ({ finding })))}${such}`;
}

const COMPONENT = "unghost";
/** In bytes; the events.k8s.io API refuses longer ones. */
const LONGEST_MESSAGE = 1024;
const LONGEST_INSTANCE = 128;
const LONGEST_NAME = 253;
/** The namespace for events of objects without one. */
const NODE_EVENTS = "default";

export type EventPlace = ReturnType<typeof eventPlace>;

interface EventTimes {
  readonly firstAt: Date;
  readonly lastAt: Date;
  readonly count: number;
}

/** The same for the same reason, object and class, also after a restart: so there is one of them. */
export function eventPlace({ reason, class: classId, pod }: Draft, node: string) {
  const about = pod ?? { namespace: NODE_EVENTS, name: node, uid: "" };
  const identity = [reason, classId, about.namespace, about.name, about.uid].join("\n");
  const hash = sha256Of(identity).slice(0, 16);
  const readable = about.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, "-")
    .slice(0, LONGEST_NAME - hash.length - 1)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "");
  return { namespace: about.namespace, name: `${readable || COMPONENT}.${hash}` };
}

/**
 * An event of the core API and not of events.k8s.io: every kubectl, dashboard and exporter shows its count and times,
 * `kubectl describe` finds it by its object, and a repeated one is patched in one request.
 */
export function eventObject(draft: Draft, node: string, times: EventTimes): object {
  const { reason, pod } = draft;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: eventPlace(draft, node),
    involvedObject:
      pod === undefined
        ? // Kubelet and kubectl know a node's events by its name in place of a uid.
          { apiVersion: "v1", kind: "Node", name: node, uid: node }
        : { apiVersion: "v1", kind: "Pod", ...pod },
    type: reason === "GhostHealed" ? "Normal" : "Warning",
    reason,
    source: { component: COMPONENT, host: node },
    reportingComponent: COMPONENT,
    reportingInstance: node.slice(0, LONGEST_INSTANCE),
    ...eventChange(draft, times),
  };
}

/** The fields that change each time. */
export function eventChange({ message }: Draft, times: EventTimes): object {
  return {
    message: cutToBytes(printable(message), LONGEST_MESSAGE),
    firstTimestamp: apiTime(times.firstAt),
    lastTimestamp: apiTime(times.lastAt),
    count: times.count,
  };
}

const ELLIPSIS = "…";

function cutToBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  // A character that was cut decodes to replacement characters.
  const kept = bytes.subarray(0, most - Buffer.byteLength(ELLIPSIS)).toString("utf8");
  return `${kept.replace(/\uFFFD+$/, "")}${ELLIPSIS}`;
}
