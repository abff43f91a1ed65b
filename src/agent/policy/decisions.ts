import { classById } from "../../classes/index.ts";
import { type Finding, podOf, reason, sandboxIdOf } from "../../evidence/finding.ts";
import { nodeHolds } from "../../evidence/pod-presence.ts";
import type { NodeView } from "../../evidence/view.ts";
import { durationInWords } from "../../host/text.ts";
import { parseSandboxName } from "../../node/types/ids.ts";
import type { Plan, PlannedAction } from "../../plan/plan.ts";
import { capped } from "../../plan/policy.ts";
import { sentence } from "../../report/words.ts";
import type { PauseReason, RefusalReason, Sighting, Standing } from "../state/state.ts";
import { type AgentPolicy, type ClassPolicy, untilWindowMs } from "./agent-policy.ts";
import { type Attempt, coolDownEndsMs, countedAttempts, type Ledger } from "./attempts.ts";

type StandingOf<Kind extends Standing["kind"]> = Extract<Standing, { kind: Kind }>;

/** `run`, or the standing of the finding. */
export type Decision =
  | { readonly kind: "run" }
  /** `dueAtMs`: by performance.now(), when to decide again. */
  | (StandingOf<"waiting"> & { readonly reason: RefusalReason; readonly dueAtMs: number })
  | (StandingOf<"observed"> & { readonly reason: RefusalReason })
  /** It is retried at `dueAtMs`, or when the subject changes. */
  | (StandingOf<"given-up"> & { readonly dueAtMs: number });

interface Decided {
  /** The action without restarts of pods in excluded namespaces. */
  readonly action: PlannedAction;
  readonly decision: Decision;
  /** Attempts that the budget counts now. */
  readonly attempts: number;
}

/** The decisions about a plan, beside what it leaves alone. */
export interface NodeDecisions extends Pick<Plan, "leftAlone"> {
  readonly decided: readonly Decided[];
  /** By performance.now(): when the first of them may decide differently. */
  readonly dueAtMs?: number;
}

/** Monotonic for every age; the wall clock is only for maintenance windows. */
export interface ClockReading {
  readonly ms: number;
  readonly wallClock: Date;
}

export interface Situation {
  readonly sightings: readonly Pick<Sighting, "finding" | "firstSeenMs">[];
  readonly ledger: Ledger;
  readonly policy: AgentPolicy;
  readonly ownPodUid?: string | undefined;
  readonly now: ClockReading;
}

type Seen = Pick<NodeView, "about" | "snapshot">;

/** What of a plan the agent may execute now, and why not the rest. Pure; classes that are off are left out. */
export function decisionsFor(
  { diagnosis: { view }, plan }: { readonly diagnosis: { readonly view: Seen }; readonly plan: Plan },
  situation: Situation,
): NodeDecisions {
  const { policy, now } = situation;
  const { others, ownLeft } = withoutOwnPod(plan, situation);
  const firstSeen = new Map(situation.sightings.map(({ finding, firstSeenMs }) => [finding.id, firstSeenMs]));
  const windowMs = untilWindowMs(policy.maintenanceWindows, now.wallClock);
  const all = others.flatMap((action) => {
    const classPolicy = policy.classes.get(action.finding.class);
    if (classPolicy === undefined || classPolicy.mode === "off") return [];
    const seenMs = firstSeen.get(action.finding.id) ?? now.ms;
    return [decideOne(action, { ...situation, view, classPolicy, seenMs, windowMs })];
  });
  const decided = withCap(all, policy.cap, now);
  const dues = decided.flatMap(({ decision }) => ("dueAtMs" in decision ? [decision.dueAtMs] : []));
  return {
    decided,
    leftAlone: [...plan.leftAlone, ...ownLeft],
    dueAtMs: dues.length === 0 ? undefined : Math.min(...dues),
  };
}

/** Unghost runs in its own pod: only kubelet may repair it. */
function withoutOwnPod({ actions }: Plan, { ownPodUid }: Pick<Situation, "ownPodUid">) {
  const isOwn = ({ finding: { subject } }: PlannedAction): boolean =>
    ownPodUid !== undefined && podOf(subject)?.uid === ownPodUid;
  const { own = [], others = [] } = Object.groupBy(actions, (action) => (isOwn(action) ? "own" : "others"));
  const ownLeft = own.map(({ finding }) => ({ finding, reason: reason("own-pod", "unghost itself runs in this pod") }));
  return { others, ownLeft };
}

/**
 * What an operator may let run: age, budget, cool-down and windows are limits for acting without one. What the policy
 * leaves out stays left out.
 */
export function permittedPlan(
  plan: Plan,
  view: Seen,
  { policy, ownPodUid }: Pick<Situation, "policy" | "ownPodUid">,
): Plan {
  const { others, ownLeft } = withoutOwnPod(plan, { ownPodUid });
  const namespaceLeftOut = ({ finding }: PlannedAction) => leftOutNamespace(finding, view, policy);
  return {
    actions: others
      .filter((action) => namespaceLeftOut(action) === undefined)
      .map((action) => withoutIgnoredRestarts(action, policy)),
    leftAlone: [
      ...plan.leftAlone,
      ...ownLeft,
      ...others.flatMap((action) => {
        const message = namespaceLeftOut(action);
        return message === undefined ? [] : [{ finding: action.finding, reason: reason("opted-out", message) }];
      }),
    ],
  };
}

function leftOutNamespace(finding: Finding, view: Seen, { ignoredNamespaces }: AgentPolicy): string | undefined {
  if (ignoredNamespaces.length === 0) return undefined;
  const namespace = namespaceOf(finding, view);
  if (namespace === undefined || !ignoredNamespaces.includes(namespace)) return undefined;
  return `by policy, the namespace ${namespace} is left out`;
}

interface Case extends Situation {
  readonly view: Seen;
  readonly classPolicy: ClassPolicy;
  readonly seenMs: number;
  /** 0 if one is open. */
  readonly windowMs: number;
}

function decideOne(action: PlannedAction, { now, policy, view, ledger, classPolicy, ...times }: Case): Decided {
  const { finding } = action;
  const entry = ledger.get(finding.id);
  const counted = countedAttempts(entry, finding, classPolicy, now.ms);
  const answer = (decision: Decision): Decided => ({
    action: withoutIgnoredRestarts(action, policy),
    decision,
    attempts: counted.length,
  });

  if (classPolicy.mode === "observe") {
    return answer({ kind: "observed", reason: "policy", message: `by policy, ${finding.class} is only observed` });
  }
  const leftOut = leftOutNamespace(finding, view, policy);
  if (leftOut !== undefined) return answer({ kind: "observed", reason: "opted-out", message: leftOut });
  const [oldest] = counted.slice(-classPolicy.attempts);
  if (oldest !== undefined && counted.length >= classPolicy.attempts) {
    return answer(givenUp(finding.class, counted, classPolicy, oldest.atMs + classPolicy.attemptsWithinMs));
  }
  const { minAgeMs, attempts } = classPolicy;
  const treated =
    counted.length === 0
      ? "its healing was put off a short while ago"
      : `it was treated a short while ago and is still there (attempt ${counted.length} of ${attempts})`;
  // None of these messages counts down: otherwise a page, a condition or an event would change with every scan.
  const waits = [
    wait("min-age", `it is touched only when it has stood for ${inWords(minAgeMs)}`, times.seenMs + minAgeMs),
    wait("cool-down", treated, coolDownEndsMs(entry, classPolicy) ?? 0),
    wait("maintenance-window", "it is outside the maintenance windows", now.ms + times.windowMs),
  ].filter(({ dueAtMs }) => dueAtMs > now.ms);
  const [longest] = waits.toSorted((one, other) => other.dueAtMs - one.dueAtMs);
  return answer(longest ?? { kind: "run" });
}

function wait(why: RefusalReason, message: string, dueAtMs: number) {
  return { kind: "waiting", reason: why, message, dueAtMs } as const;
}

function givenUp(classId: string, counted: readonly Attempt[], policy: ClassPolicy, dueAtMs: number): Decision {
  const period = inWords(policy.attemptsWithinMs);
  const last = counted.at(-1);
  const message = counted.every(({ outcome }) => outcome === "healed")
    ? `it was healed ${counted.length} times within ${period} and came back each time`
    : `${counted.length} attempts within ${period} did not heal it${last?.reason === undefined ? "" : `; the last one: ${last.reason}`}`;
  return { kind: "given-up", message, next: byHand(classId), dueAtMs };
}

function byHand(classId: string): string {
  const known = classById(classId);
  const steps = known === undefined || known.byHand.length === 0 ? (known?.treatment.steps ?? []) : known.byHand;
  return [...steps.map(sentence), `Details: \`unghost explain ${classId}\`.`].join(" ");
}

function withoutIgnoredRestarts(action: PlannedAction, { ignoredNamespaces }: AgentPolicy): PlannedAction {
  const { followUps, ...rest } = action;
  if (followUps === undefined || ignoredNamespaces.length === 0) return action;
  const left = followUps.filter((step) => step.kind !== "kick-pod" || !ignoredNamespaces.includes(step.namespace));
  return { ...rest, followUps: left };
}

function withCap(decided: readonly Decided[], cap: number, now: ClockReading): readonly Decided[] {
  const runs = decided.filter(({ decision }) => decision.kind === "run").map(({ action }) => action);
  const overCap = new Set(capped(runs, cap).overCap);
  if (overCap.size === 0) return decided;
  const message = `one healing touches ${cap} subjects at most; it is in the next one`;
  const decision = wait("policy", message, now.ms);
  return decided.map((one) => (overCap.has(one.action) ? { ...one, decision } : one));
}

function inWords(milliseconds: number): string {
  return durationInWords(milliseconds / 1000);
}

const NAMESPACE_LABEL = "io.kubernetes.pod.namespace";

/** The namespace of a finding. For a sandbox that is no longer listed, it comes from its records. */
function namespaceOf({ subject }: Finding, view: Seen): string | undefined {
  const pod = podOf(subject);
  if (pod !== undefined) return pod.namespace;
  if (subject.type === "volume-attachment") {
    const { kubernetes } = view.snapshot;
    if (kubernetes.source !== "api") return undefined;
    return kubernetes.unattached?.find(({ name }) => name === subject.name)?.claim?.namespace;
  }
  const sandboxId = sandboxIdOf(subject);
  if (sandboxId === undefined) return undefined;
  const { sandbox, metadata, record, storeRecord } = view.about(sandboxId);
  return (
    sandbox?.pod.namespace ??
    parseSandboxName(metadata?.name ?? "")?.namespace ??
    record?.labels[NAMESPACE_LABEL] ??
    storeRecord?.labels[NAMESPACE_LABEL]
  );
}

export function runnablePlan({ decided, leftAlone }: NodeDecisions): Plan {
  return { leftAlone, actions: decided.flatMap(({ action, decision }) => (decision.kind === "run" ? [action] : [])) };
}

/** A standing, and why nothing is done if that is a decision. */
export interface Stand extends Pick<Sighting, "standing" | "attempts"> {
  readonly refusal?: RefusalReason | undefined;
  /** After an attempt: by performance.now(), when the next one may start. */
  readonly nextTryMs?: number | undefined;
}

/** The standing of each finding, by its id. A finding that may run now keeps its standing until it does. */
export function standsOf({ decided, leftAlone }: NodeDecisions, pause: PauseReason | undefined) {
  const stands = new Map<string, Stand>();
  for (const { finding, reason: why } of leftAlone) {
    const refusal = why.code === "opted-out" ? why.code : (pause?.reason ?? "guard");
    // A manual class was not refused: it was never planned.
    const isRefused = finding.treatment.automatic;
    const standing: Standing = { kind: "observed", message: why.text };
    stands.set(finding.id, { standing, attempts: 0, refusal: isRefused ? refusal : undefined });
  }
  for (const { action, decision, attempts } of decided) {
    const { id } = action.finding;
    if (decision.kind === "run") {
      if (pause === undefined) continue;
      stands.set(id, { standing: { kind: "waiting", message: pause.message }, attempts, refusal: pause.reason });
      continue;
    }
    const { reason: refusal, dueAtMs, ...standing } = { reason: undefined, dueAtMs: undefined, ...decision };
    stands.set(id, { standing, attempts, refusal, nextTryMs: attempts > 0 ? dueAtMs : undefined });
  }
  return stands;
}

/** Annotations in the cluster that pause the whole node. */
export function clusterPause(view: NodeView): PauseReason | undefined {
  const { paused, node } = nodeHolds(view);
  if (paused) return { reason: "paused", message: "the node is paused by unghost.dev/paused" };
  if (node) return { reason: "opted-out", message: "the node is opted out by unghost.dev/ignore" };
  return undefined;
}
