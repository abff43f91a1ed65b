import { count } from "../../report/text.ts";
import { byClass } from "./condition.ts";
import type { EventReason, News, PodName } from "./news.ts";

/** An event to be made, or one more time of it. */
export interface Draft {
  readonly reason: EventReason;
  /** Missing: about the node. */
  readonly pod?: PodName;
  /** What is counted together, beside reason and object: a class, or all of them. */
  readonly class: string;
  readonly message: string;
  readonly count: number;
}

/** More of a kind than these at once are one story, and told once. */
const A_FEW = 5;
const ALL_CLASSES = "all";
const MOST_NAMED = 3;

/**
 * What is told about all that happened within a moment: each pod's own, and per class what the node's events say. After a
 * power cut it is one event for the node and none for its hundred pods.
 */
export function draftsOf(news: readonly News[], mayNamePods: boolean): readonly Draft[] {
  return [...Map.groupBy(news, ({ reason }) => reason).values()].flatMap((group) => {
    if (group.length > A_FEW || !mayNamePods) return [nodeDraft(group, ALL_CLASSES)];
    const classes = Map.groupBy(group, (one) => one.class);
    const forNode = [...classes].map(([id, ofClass]) => nodeDraft(ofClass, id));
    const forPods = group.filter(({ pod }) => pod !== undefined).map((one) => ({ ...one, count: 1 }));
    return [...forPods, ...forNode];
  });
}

const WORDS: Readonly<Record<EventReason, string>> = {
  PodsBlocked: "blocked",
  GhostDetected: "detected",
  GhostHealed: "healed",
  GhostHealFailed: "not healed",
  GhostHealRefused: "left alone",
};

function nodeDraft(group: readonly News[], classId: string): Draft {
  const [first] = group;
  if (first === undefined) throw new Error("a group has at least one member");
  const { reason } = first;
  const message = group.length === 1 ? aloneInWords(first) : togetherInWords(group, reason);
  return { reason, class: classId, message, count: group.length };
}

function aloneInWords({ class: classId, message, pod }: News): string {
  return `${classId}${pod === undefined ? "" : ` of ${pod.namespace}/${pod.name}`}: ${message}`;
}

function togetherInWords(group: readonly News[], reason: EventReason): string {
  const pods = [...new Set(group.flatMap(({ pod }) => (pod === undefined ? [] : [`${pod.namespace}/${pod.name}`])))];
  const named = pods.toSorted().slice(0, MOST_NAMED).join(", ");
  const such = named === "" ? "" : `; such as ${named}`;
  return `${count(group.length, "ghost")} ${WORDS[reason]}: ${byClass(group.map((finding) => ({ finding })))}${such}`;
}
