import { isFailing } from "../../evidence/pending.ts";
import { printable, truncate } from "../../host/text.ts";
import type { NodeReport, ReportedPending } from "../../report/node-report.ts";
import { CANNOT_CREATE, retryWords, stateOfFindings } from "../../report/node-state.ts";
import { severityRank } from "../../report/node-summary.ts";
import { lastingFailures, podWords } from "../../report/pending.ts";
import { countByKind } from "../../report/words.ts";
import { type AgentState, retriesOf, type ScanState, type Sighting } from "../state/state.ts";

/** The node condition `GhostSandboxes`. As in node-problem-detector, True is bad. */
export interface Condition {
  readonly status: "True" | "False" | "Unknown";
  /** UpperCamelCase; alerts and scripts select by it. */
  readonly reason: ConditionReason;
  /** It changes with the findings and not with the time, because each change is a write to the API. */
  readonly message: string;
  /** What changes all the time, such as the last success: added to the message when that is written for another reason. */
  readonly passing?: string;
}

export type ConditionReason =
  | "NoGhostSandboxes"
  | "GhostSandboxesPresent"
  | "LeaksPresent"
  | "PodsBlocked"
  | "GhostHealFailed"
  | "GhostHealRefused"
  | "HealingPaused"
  | "BreakerOpen"
  | "NodeUnreadable"
  | "ScanOverdue"
  | "SandboxesCreated"
  | "SandboxCreationFails"
  | "NoSandboxCreatedYet";

/** Ten missed scans of the default interval. */
const OVERDUE_MS = 10 * 60_000;
const MAX_CLASSES = 4;
const LONGEST_MESSAGE = 500;

/** Undefined before the first scan: the condition of an earlier agent then stays. */
export function conditionOf(state: AgentState, nowMs: number): Condition | undefined {
  return state.scan && withSafeMessage(assess(state, state.scan, nowMs));
}

export const OVERDUE: Condition = {
  status: "Unknown",
  reason: "ScanOverdue",
  message: "No scan of this node has finished for ten minutes",
};

export function isOverdue({ endedAtMs }: ScanState, nowMs: number): boolean {
  return nowMs - endedAtMs > OVERDUE_MS;
}

function assess(state: AgentState, scan: ScanState, nowMs: number): Condition {
  if (isOverdue(scan, nowMs)) return OVERDUE;
  if (state.sightings.length > 0) return { status: "True", reason: badReason(state), message: badMessage(state) };
  const { report } = scan;
  const { verdict, problems } = report;
  // A hung Status makes the verdict unknown, but blocked pods are known.
  if (lastingFailures(report).length > 0)
    return { status: "True", reason: "PodsBlocked", message: degradedMessage(report) };
  if (verdict === "unknown") {
    const [first] = problems;
    const why = first === undefined ? "" : `: ${first.source}: ${first.problem}`;
    const message = `The last scan could not determine whether there are ghosts${why}`;
    return { status: "Unknown", reason: "NodeUnreadable", message };
  }
  const message = ["No ghost sandbox on this node", pausedWords(state)].filter((part) => part !== undefined).join("; ");
  return { status: "False", reason: "NoGhostSandboxes", message };
}

function badReason({ breaker, pauseReason, sightings }: AgentState): ConditionReason {
  if (breaker.open) return "BreakerOpen";
  if (pauseReason?.reason === "paused") return "HealingPaused";
  // Only waits for other nodes: it is about to be healed.
  if (pauseReason !== undefined && pauseReason.reason !== "slots") return "GhostHealRefused";
  if (sightings.some(isGivenUp)) return "GhostHealFailed";
  return stateOfFindings(sightings.map(({ finding }) => finding)) === "leaks"
    ? "LeaksPresent"
    : "GhostSandboxesPresent";
}

function badMessage(state: AgentState): string {
  const { sightings } = state;
  const parts = [
    creationSentence(state.scan?.report),
    `${countByKind(sightings.map(({ finding }) => finding))}: ${byClass(sightings)}`,
    worst(sightings),
    failedWords(sightings),
    givenUpWords(sightings),
    pausedWords(state),
    pendingWords(state.scan?.report),
  ];
  return parts.filter((part) => part !== undefined).join("; ");
}

function creationSentence(report: NodeReport | undefined): string | undefined {
  return report?.podCreation?.able === "no" ? `T${CANNOT_CREATE.slice(1)}` : undefined;
}

const MAX_PODS = 3;

/** What fails and for which pods; without ages, which would change it with every scan. */
export function degradedMessage(report: NodeReport): string {
  const { pending = [] } = report;
  const failing = pending.filter(isFailing);
  const pods = [...new Set(failing.flatMap(({ pod }) => pod ?? []).map(podWords))];
  const more = pods.length > MAX_PODS ? ` and ${pods.length - MAX_PODS} more` : "";
  const [last] = failing.flatMap(({ reported }) => reported);
  const parts = [
    creationSentence(report),
    byReason(failing),
    pods.length === 0 ? undefined : `blocked: ${pods.toSorted().slice(0, MAX_PODS).join(", ")}${more}`,
    last === undefined ? undefined : `reported: ${last.code}`,
  ];
  return parts.filter((part) => part !== undefined).join("; ");
}

function pendingWords(report: NodeReport | undefined): string | undefined {
  const failing = (report?.pending ?? []).filter(isFailing);
  return failing.length === 0 ? undefined : `pending: ${byReason(failing)}`;
}

function byReason(pending: readonly ReportedPending[]): string {
  return [...Map.groupBy(pending, ({ reason }) => reason)]
    .map(([reason, group]) => `${group.length} ${reason}`)
    .toSorted()
    .join(", ");
}

/** The most frequent classes first, then by name, so that the text is deterministic. */
export function byClass(found: readonly { readonly finding: { readonly class: string } }[]): string {
  const groups = [...Map.groupBy(found, ({ finding }) => finding.class)];
  const sorted = groups.toSorted(([a, some], [b, more]) => more.length - some.length || (a < b ? -1 : 1));
  const named = sorted.slice(0, MAX_CLASSES).map(([id, { length }]) => `${length} ${id}`);
  const others = sorted.slice(MAX_CLASSES).flatMap(([, group]) => group).length;
  return [...named, ...(others === 0 ? [] : [`${others} others`])].join(", ");
}

/** What the worst finding blocks, or else its pod; among equals the first by name. */
function worst(sightings: readonly Sighting[]): string | undefined {
  const named = sightings.flatMap(({ finding }) => {
    const [blocked] = finding.blocks;
    const { pod } = finding.subject;
    const words = blocked === undefined ? pod && `such as ${podWords(pod)}` : `blocked: ${blocked}`;
    return words === undefined ? [] : [{ words, rank: severityRank(finding) }];
  });
  const [first] = named.toSorted((one, other) => one.rank - other.rank || (one.words < other.words ? -1 : 1));
  return first?.words;
}

function givenUpWords(sightings: readonly Sighting[]): string | undefined {
  const [first, ...others] = sightings.filter(isGivenUp);
  if (first === undefined || first.standing.kind !== "given-up") return undefined;
  const { times, nextTryAt } = retriesOf(first);
  const tries = retryWords({ times, nextTryAt });
  return `${others.length + 1} given up${tries === undefined ? "" : ` (${tries})`}, ${first.standing.next}`;
}

/** The one that is tried again first. */
function failedWords(sightings: readonly Sighting[]): string | undefined {
  const failed = sightings.filter((one) => !isGivenUp(one)).flatMap((one) => retryWords(retriesOf(one)) ?? []);
  const [first, ...others] = failed.toSorted();
  return first === undefined ? undefined : `${first}${others.length === 0 ? "" : ` (and ${others.length} more)`}`;
}

function isGivenUp({ standing }: Sighting): boolean {
  return standing.kind === "given-up";
}

export function pausedWords({ breaker, pauseReason }: AgentState): string | undefined {
  if (breaker.open) return `nothing is healed: ${breaker.message ?? "the fleet's breaker is open"}`;
  if (pauseReason === undefined) return undefined;
  // The nodes that are healing change every second.
  return pauseReason.reason === "slots"
    ? "waiting for other nodes to finish healing"
    : `nothing is healed: ${pauseReason.message}`;
}

export function withSafeMessage(condition: Condition): Condition {
  return { ...condition, message: truncate(printable(condition.message), LONGEST_MESSAGE) };
}
