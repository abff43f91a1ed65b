import { podGone } from "../../classes/left-behind/pod-gone.ts";
import { fullStop, sentence } from "../../report/text.ts";
import type { AgentEvent, HealRecord, RefusalReason, Sighting } from "../state.ts";
import { degradedMessage } from "./condition.ts";

export type EventReason = "PodsBlocked" | "GhostDetected" | "GhostHealed" | "GhostHealFailed" | "GhostHealRefused";

export interface PodName {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Something that happened to one ghost, and is worth an event. */
export interface News {
  readonly reason: EventReason;
  readonly class: string;
  readonly message: string;
  readonly pod?: PodName;
}

/** Somebody has to know of these; to wait for an age, a window or a turn is how things are meant to go. */
const REFUSALS_TOLD: ReadonlySet<RefusalReason> = new Set(["paused", "opted-out", "breaker", "guard", "disk"]);

/** Events of one kind are counted together by class: failures without a finding have this one. */
const DEGRADED = "degraded";

/** The cluster has no such pod: nobody would ever look at an event about it. */
const WITHOUT_POD = podGone.id;

export function newsOf(event: AgentEvent): News | undefined {
  switch (event.kind) {
    case "detected":
      return ofSighting("GhostDetected", event.sighting, blocksInWords(event.sighting));
    case "degraded":
      return { reason: "PodsBlocked", class: DEGRADED, message: degradedMessage(event.report) };
    case "healed":
      return ofRecord("GhostHealed", event.record);
    case "heal-failed":
      return ofRecord("GhostHealFailed", event.record);
    case "given-up": {
      const { standing } = event.sighting;
      if (standing.kind !== "given-up") return undefined;
      return ofSighting("GhostHealFailed", event.sighting, `Given up: ${fullStop(standing.because)} ${standing.next}`);
    }
    case "refused":
      if (event.sighting === undefined || !REFUSALS_TOLD.has(event.reason)) return undefined;
      return ofSighting("GhostHealRefused", event.sighting, `Not touched: ${event.because}`);
    default:
      return undefined;
  }
}

function ofSighting(reason: EventReason, { finding }: Sighting, more: string): News {
  const { class: classId, summary, subject } = finding;
  const message = more === "" ? summary : `${fullStop(summary)} ${more}`;
  return { reason, class: classId, message, ...podPart(classId, subject.pod) };
}

function ofRecord(reason: EventReason, record: HealRecord): News {
  const { class: classId, summary, done, reason: why, journalId, pod } = record;
  const told = done === undefined ? summary : `${sentence(done)} Before: ${summary}`;
  const message = [
    why === undefined ? told : `${fullStop(told)} ${why}`,
    ...(journalId === undefined ? [] : [`(journal ${journalId})`]),
  ];
  return { reason, class: classId, message: message.join(" "), ...podPart(classId, pod) };
}

function blocksInWords({ finding }: Sighting): string {
  const [first] = finding.blocks;
  return first === undefined ? "" : `Blocked: ${first}`;
}

function podPart(classId: string, pod: PodName | undefined): Pick<News, "pod"> {
  if (pod === undefined || classId === WITHOUT_POD) return {};
  const { namespace, name, uid } = pod;
  return namespace === "" || name === "" ? {} : { pod: { namespace, name, uid } };
}
