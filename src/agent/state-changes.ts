import { isDeepStrictEqual } from "node:util";
import { podOf } from "../evidence/finding.ts";
import type { ActionResult } from "../heal/run-action.ts";
import type { PlannedAction } from "../plan/plan.ts";
import { asBeingHealed, sandboxOf } from "../report/build.ts";
import type { NodeReport, ReportedFinding } from "../report/node-report.ts";
import { lastingFailures } from "../report/pending.ts";
import { doneInWords } from "../report/step-words.ts";
import type { Growth } from "./counts.ts";
import type { ClockReading, Stand } from "./policy/decisions.ts";
import {
  type AgentEvent,
  type AgentState,
  type HealRecord,
  type PauseReason,
  type ScanState,
  type Sighting,
  type Standing,
  verdictWords,
} from "./state/state.ts";
import type { Store } from "./state/store.ts";
import { addToTimeline } from "./state/timeline.ts";

/** The report, with subjects that this agent is healing under the class by which it heals them. */
export function withOwnHealing(report: NodeReport, sightings: readonly Sighting[]): NodeReport {
  const beingHealed = sightings.filter(({ standing }) => standing.kind === "healing");
  const healing = new Map(beingHealed.map(({ finding }) => [sandboxOf(finding), finding]));
  return healing.size === 0 ? report : asBeingHealed(report, (id) => healing.get(id));
}

/** The same subject has the same key, whatever class explains it at the moment. */
function reportedSubjectKey(finding: ReportedFinding): string {
  const { type, sandboxId } = finding.subject;
  return type === "sandbox" && sandboxId !== undefined ? sandboxId : finding.id;
}

/** A new state, and the events to publish for it. */
export interface Change {
  readonly state: AgentState;
  readonly events: readonly AgentEvent[];
}

export function apply(store: Store, { state, events }: Change): void {
  store.update(() => state);
  for (const event of events) store.publish(event);
}

interface ScanResult extends Omit<ScanState, "endedAtMs"> {
  readonly growth: Growth;
  readonly now: ClockReading;
}

export function afterScan(state: AgentState, { report: seen, counts, growth, seconds, now }: ScanResult): Change {
  const report = withLastSuccess(seen, state.scan?.report);
  const { sightings, appeared, gone } = updateSightings(state.sightings, report, now);
  const { totals } = state;
  return {
    state: {
      ...state,
      scan: { report, counts, seconds, endedAtMs: now.ms },
      scanFailure: undefined,
      sightings,
      totals: {
        ...totals,
        scans: totals.scans + 1,
        crashRestarts: totals.crashRestarts + growth.crashRestarts,
        kernelStalls: totals.kernelStalls + growth.kernelStalls,
      },
      timeline: addToTimeline(state.timeline, {
        at: now.wallClock,
        ghosts: ghostsKnown(report),
        ...growth,
        sinceLastScanMs: state.scan && now.ms - state.scan.endedAtMs,
      }),
    },
    events: [
      { kind: "scanned", seconds },
      ...verdictChange(state.scan?.report, report),
      ...appeared.map((sighting) => ({ kind: "detected", sighting }) as const),
      ...gone.map((sighting) => ({ kind: "gone", sighting }) as const),
      ...(isBlocked(report) && !isBlocked(state.scan?.report) ? [{ kind: "degraded", report } as const] : []),
    ],
  };
}

/** One scan knows only of sandboxes that still exist: the newest one may have been deleted since the previous scan. */
function withLastSuccess(report: NodeReport, before: NodeReport | undefined): NodeReport {
  const earlier = before?.podCreation?.lastSuccess;
  if (report.podCreation === undefined || earlier === undefined) return report;
  // A time in the future is from before the clock was set back.
  if (earlier.at > report.observedAt || (report.podCreation.lastSuccess?.at ?? "") >= earlier.at) return report;
  return { ...report, podCreation: { ...report.podCreation, lastSuccess: earlier } };
}

/** A scan that could neither find a ghost nor rule one out has no number. */
function ghostsKnown({ verdict, findings }: NodeReport): number | undefined {
  return verdict === "unknown" && findings.length === 0 ? undefined : findings.length;
}

/** The scan threw: the ghosts of this minute are unknown, unless another scan of the minute ends. */
export function afterFailedScan(state: AgentState, reason: string, at: Date): Change {
  const { totals, timeline } = state;
  const after: AgentState = {
    ...state,
    scanFailure: reason,
    totals: { ...totals, scansFailed: totals.scansFailed + 1 },
    timeline: addToTimeline(timeline, { at, ghosts: undefined }),
  };
  return { state: after, events: [{ kind: "scan-failed", reason }] };
}

/**
 * Pods fail to start or stop, and no finding explains it yet: the verdict is degraded, or unknown while Status hangs.
 */
function isBlocked(report: NodeReport | undefined): boolean {
  return report?.findings.length === 0 && lastingFailures(report).length > 0;
}

/** A healthy node at the agent's start is not a change. */
function verdictChange(before: NodeReport | undefined, report: NodeReport): readonly AgentEvent[] {
  const { verdict: to } = report;
  if (to === (before?.verdict ?? "healthy")) return [];
  return [{ kind: "verdict", from: before?.verdict, to, ...verdictWords(report) }];
}

/** Each finding's new standing. Only changes are published: an unchanged wait is not repeated at every scan. */
export function afterDeciding(state: AgentState, stands: ReadonlyMap<string, Stand>, now: ClockReading): Change {
  const events: AgentEvent[] = [];
  const sightings = state.sightings.map((before) => {
    const stand = stands.get(before.finding.id);
    if (stand === undefined) return before;
    const { standing, attempts, refusal, nextTryMs } = stand;
    const nextTryAt = nextTryMs === undefined ? undefined : steadyTime(before.nextTryAt, nextTryMs, now);
    const sighting = { ...before, standing, attempts, nextTryAt };
    if (isSameStanding(before, stand)) return sighting;
    if (standing.kind === "given-up") events.push({ kind: "given-up", sighting });
    else if (refusal !== undefined && "message" in standing)
      events.push({ kind: "refused", reason: refusal, message: standing.message, sighting });
    return sighting;
  });
  return counted({ ...state, sightings }, events);
}

/** Clocks drift against each other: the same moment stays the same text, which conditions and events repeat. */
const SAME_MOMENT_MS = 5000;

function steadyTime(earlier: Date | undefined, atMs: number, now: ClockReading): Date {
  const at = now.wallClock.getTime() + atMs - now.ms;
  if (earlier !== undefined && Math.abs(earlier.getTime() - at) < SAME_MOMENT_MS) return earlier;
  return new Date(Math.ceil(at / 1000) * 1000);
}

/** Healing is paused for a reason outside the findings; undefined ends the pause. */
export function afterPause(state: AgentState, pauseReason: PauseReason | undefined): Change {
  if (isDeepStrictEqual(state.pauseReason, pauseReason)) return { state, events: [] };
  return counted({ ...state, pauseReason }, pauseReason === undefined ? [] : [{ kind: "refused", ...pauseReason }]);
}

/** These are being healed now. */
export function afterBegin(state: AgentState, actions: readonly PlannedAction[]): Change {
  const ids = new Set(actions.map(({ finding }) => finding.id));
  const sightings = state.sightings.map(
    (sighting): Sighting => (ids.has(sighting.finding.id) ? { ...sighting, standing: { kind: "healing" } } : sighting),
  );
  return { state: { ...state, pauseReason: undefined, sightings }, events: [] };
}

const MAX_HEALS = 100;

/**
 * Removes findings that the verification no longer finds; a finding that disappears without a heal is published as
 * `gone`.
 */
export function afterHealing(state: AgentState, results: readonly ActionResult[], now: ClockReading): Change {
  const sightings = new Map(state.sightings.map((sighting) => [sighting.finding.id, sighting]));
  const records = results.map((result) => recordOf(result, now.wallClock));
  const count = (of: HealRecord["outcome"]): number => records.filter(({ outcome }) => outcome === of).length;
  const heals = new Map(state.totals.heals);
  for (const { class: id, outcome } of records) {
    const key = `${id} ${outcome}`;
    heals.set(key, (heals.get(key) ?? 0) + 1);
  }
  const healed = new Set(records.filter(({ outcome }) => outcome === "healed").map(({ finding }) => finding));
  const after: AgentState = {
    ...state,
    sightings: state.sightings.filter(({ finding }) => !healed.has(finding.id)).map(noLongerHealing),
    heals: [...records.toReversed(), ...state.heals].slice(0, MAX_HEALS),
    totals: { ...state.totals, heals },
    timeline: addToTimeline(state.timeline, {
      at: now.wallClock,
      ghosts: state.sightings.length,
      healed: count("healed"),
      failed: count("failed"),
    }),
  };
  return counted(
    after,
    records.map((record) => eventOf(record, sightings.get(record.finding))),
  );
}

function noLongerHealing(sighting: Sighting): Sighting {
  return sighting.standing.kind === "healing" ? { ...sighting, standing: UNDECIDED } : sighting;
}

function eventOf(record: HealRecord, sighting: Sighting | undefined): AgentEvent {
  if (record.outcome === "healed") return { kind: "healed", record, sighting };
  if (record.outcome === "failed") return { kind: "heal-failed", record, sighting };
  return { kind: "refused", reason: "guard", message: record.reason ?? record.outcome, sighting };
}

function recordOf({ action, outcome, reason, journalId, undo, undone, seconds }: ActionResult, at: Date): HealRecord {
  const { id, class: classId, summary, subject } = action.finding;
  const pod = podOf(subject);
  return {
    at,
    finding: id,
    class: classId,
    summary,
    done: outcome === "healed" ? doneInWords(action, undone) : undefined,
    pod: pod && { namespace: pod.namespace, name: pod.name, uid: pod.uid },
    outcome,
    reason,
    journalId,
    undo,
    seconds,
  };
}

function counted(state: AgentState, events: readonly AgentEvent[]): Change {
  const reasons = events.flatMap((event) => (event.kind === "refused" ? [event.reason] : []));
  if (reasons.length === 0) return { state, events };
  const refusals = new Map(state.totals.refusals);
  for (const reason of reasons) refusals.set(reason, (refusals.get(reason) ?? 0) + 1);
  return { state: { ...state, totals: { ...state.totals, refusals } }, events };
}

function isSameStanding({ standing: one }: Sighting, { standing: other }: Stand): boolean {
  return one.kind === other.kind && ("message" in one ? one.message : "") === ("message" in other ? other.message : "");
}

const UNDECIDED: Standing = { kind: "waiting", message: "not decided yet" };

/**
 * The current findings, each with its first-seen time. A subject that another class explains now is still the same
 * sighting. A scan that could not read the runtime removes nothing, because its missing findings may still exist. A
 * scan during a heal does not remove what is being healed.
 */
function updateSightings(before: readonly Sighting[], report: NodeReport, now: ClockReading) {
  const known = new Map(before.map((sighting) => [reportedSubjectKey(sighting.finding), sighting]));
  const found = new Set(report.findings.map(reportedSubjectKey));
  const seen = report.findings.map((finding): Sighting => {
    const earlier = known.get(reportedSubjectKey(finding));
    if (earlier !== undefined) return { ...earlier, finding };
    return { finding, firstSeenAt: now.wallClock, firstSeenMs: now.ms, standing: UNDECIDED, attempts: 0 };
  });
  const missing = before.filter(({ finding }) => !found.has(reportedSubjectKey(finding)));
  const isKept = ({ standing }: Sighting): boolean => !report.runtime.reachable || standing.kind === "healing";
  return {
    sightings: [...seen, ...missing.filter(isKept)],
    appeared: seen.filter(({ finding }) => !known.has(reportedSubjectKey(finding))),
    gone: missing.filter((sighting) => !isKept(sighting)),
  };
}
