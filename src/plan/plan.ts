import { classById, classThatAdopts } from "../classes/index.ts";
import { type Diagnosis, NOT_STUCK } from "../diagnose/diagnose.ts";
import { toFinding } from "../diagnose/from-logs.ts";
import { hasIgnoreMark, isOptedOut, isRecovering } from "../evidence/candidates.ts";
import { endedInOrder, endWasLost, predatesStart, wasNeverCreated } from "../evidence/ending.ts";
import { type Finding, podOf, type Reason, reason, sandboxIdOf } from "../evidence/finding.ts";
import { namesHeldInLogs } from "../evidence/locks.ts";
import {
  isHeldInCluster,
  isKubeletAlive,
  isStatic,
  nodeHolds,
  podPresence,
  whyUnasked,
} from "../evidence/pod-presence.ts";
import { runtimeReports } from "../evidence/reports.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { Step } from "../evidence/step.ts";
import type { AboutId, NodeView } from "../evidence/view.ts";
import type { SandboxId } from "../node/types/ids.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import { decideRung, type KeepCode, type LadderCase, OPTED_OUT, type Rung, type TreatCode } from "./ladder.ts";
import { obstaclesOf, sweepAfter, unfinishedFindings } from "./obstacles.ts";
import { afterPluginSockets, compareActions, csiOf, type Rank, rankOf } from "./order.ts";
import { capped, doubtAboutClock, type HealPolicy } from "./policy.ts";

const NONE: ReadonlySet<string> = new Set();

/** Why a finding is skipped. Users script against these codes. */
export type LeftAloneCode =
  | KeepCode
  | "paused"
  | "untreatable"
  | "needs-consent"
  | "nothing-to-end"
  | "over-cap"
  | "own-pod";

/** The steps for one finding, in order; it ends with the first step that heals. */
export interface PlannedAction {
  readonly finding: Finding;
  readonly rank: Rank;
  readonly steps: readonly Step[];
  /** Steps after the heal; they do not affect its result. */
  readonly followUps?: readonly Step[];
  /** Why it may go this far; for an action without steps, why it is skipped. */
  readonly reason: Reason<TreatCode | LeftAloneCode | "cure">;
  /** Actions of one lane run sequentially, in the plan's order. */
  readonly lane: string;
}

export interface LeftAlone {
  readonly finding: Finding;
  readonly reason: Reason<LeftAloneCode>;
}

export interface Plan {
  readonly actions: readonly PlannedAction[];
  readonly leftAlone: readonly LeftAlone[];
}

/** Findings and policy in, ordered actions out. Pure and deterministic. */
export function planHealing(diagnosis: Diagnosis, policy: HealPolicy): Plan {
  const actions: PlannedAction[] = [];
  const leftAlone: LeftAlone[] = [];
  const swept = policy.allDead ? sweptFindings(diagnosis) : unfinishedFindings(diagnosis, policy.unfinished ?? NONE);
  const retained = new Set(diagnosis.dead.filter((one) => one.retained !== undefined).map(({ sandbox }) => sandbox.id));
  const { view } = diagnosis;
  const known: Known = {
    view,
    dead: new Set(diagnosis.dead.map(({ sandbox }) => sandbox.id)),
    retained,
    heldNames: namesHeldInLogs(view),
    reportedFailed: sandboxesReportedFailed(view),
    clockDoubt: doubtAboutClock(view),
  };
  for (const finding of [...diagnosis.findings, ...swept]) {
    const planned = planOne(finding, known, policy);
    if ("steps" in planned)
      actions.push({ finding, lane: laneOf(finding), ...planned, ...followUpsOf(finding, view, policy) });
    else leftAlone.push({ finding, reason: planned.leave });
  }
  actions.sort(compareActions);
  const { actions: first, overCap } = capped(afterPluginSockets(actions, view), policy.cap);
  const overTheCap = reason("over-cap", `over the cap of ${policy.cap} for one run; heal again`);
  leftAlone.push(...overCap.map(({ finding }) => ({ finding, reason: overTheCap })));
  return { actions: first, leftAlone };
}

interface Known {
  readonly view: NodeView;
  readonly dead: ReadonlySet<SandboxId>;
  readonly retained: ReadonlySet<SandboxId>;
  readonly heldNames: ReadonlyMap<SandboxId, string>;
  /** Sandboxes with a reported failed operation. */
  readonly reportedFailed: ReadonlySet<SandboxId | undefined>;
  readonly clockDoubt: Reason<"clock-in-doubt"> | undefined;
}

/** Only a kubelet restarts a plugin, and only then a restart of other pods makes sense. */
function followUpsOf(
  { followUps = [] }: Finding,
  view: NodeView,
  { noKick = false }: HealPolicy,
): Pick<PlannedAction, "followUps"> {
  return noKick || !isKubeletAlive(view) || followUps.length === 0 ? {} : { followUps };
}

type Planned = Omit<PlannedAction, "finding" | "lane"> | { readonly leave: Reason<LeftAloneCode> };

/** One action at a time per sandbox; attempts that a clock step mixed up run oldest first. */
function laneOf({ id, class: classId, subject }: Finding): string {
  return (reusesAttempts(classId) ? podOf(subject)?.uid : undefined) ?? sandboxIdOf(subject) ?? id;
}

function reusesAttempts(classId: string): boolean {
  return classById(classId)?.reusesAttempts === true;
}

function planOne(finding: Finding, known: Known, policy: HealPolicy): Planned {
  const { subject } = finding;
  const { view } = known;
  const { paused, node } = nodeHolds(view);
  if (paused) return { leave: reason("paused", "the node is paused by unghost.dev/paused") };
  if (node) return { leave: OPTED_OUT };
  if (finding.untreatable !== undefined) return { leave: reason("untreatable", finding.untreatable) };
  if (!finding.treatment.automatic && !isConsentedTo(finding, policy)) return { leave: needsConsent(finding) };
  const sandboxId = sandboxIdOf(subject);
  const about = sandboxId && view.about(sandboxId);
  // A sandbox that is being created is not listed yet, but its record has the pod's labels.
  if (hasIgnoreMark(about?.record?.labels ?? {})) return { leave: OPTED_OUT };
  const pod = podOf(subject);
  if (pod !== undefined && isHeldInCluster(pod, view)) return { leave: OPTED_OUT };
  const cure: Planned = { rank: "rest", steps: finding.cure, reason: reason("cure", finding.summary) };
  const sandbox = about?.sandbox;
  if (subject.type !== "sandbox" || sandbox === undefined) {
    return finding.cure.length === 0 ? { leave: NOTHING_TO_END } : cure;
  }
  const decision = decideRung(ladderCase(finding, sandbox, known, policy));
  if (decision.rung === 0) {
    // Hung processes are ended and broken files are moved; a sandbox that may be alive is not touched itself.
    const isCurable = decision.reason.code === "not-proven-dead" && finding.cure.length > 0;
    return isCurable ? cure : { leave: decision.reason };
  }
  return {
    // The pod whose sandbox blocks a CSI driver is its node plugin, whatever its name.
    rank: finding.missingSockets === undefined ? rankOf(sandbox, csiOf(sandbox, view)) : "csi-node-plugin",
    steps: stepsFor(decision.rung, finding, sandbox, view),
    reason: decision.reason,
  };
}

const NOTHING_TO_END = reason(
  "nothing-to-end",
  "nothing was found that could be ended: restart the runtime manually to clear it",
);

function needsConsent({ class: id, cure, treatment }: Finding): Reason<"needs-consent"> {
  // Without a cure only the manual steps help.
  const allow = cure.length === 0 ? "" : ` (to allow it: unghost heal --allow ${id}, or agent.classes.${id}: heal)`;
  return reason("needs-consent", `manual${allow}: ${treatment.steps.join(" ")}`);
}

/** Some treatments need consent because they end processes. */
function isConsentedTo({ class: id, cure }: Finding, { consented = NONE }: HealPolicy): boolean {
  return cure.length > 0 && consented.has(id);
}

function stepsFor(rung: Exclude<Rung, 0>, finding: Finding, sandbox: Sandbox, view: NodeView): readonly Step[] {
  const { id } = sandbox;
  const about = view.about(id);
  const stop: Step = { kind: "stop-sandbox", sandboxId: id };
  const cure = obstaclesOf(finding, sandbox, about, view);
  switch (rung) {
    case 1:
      return [...cure, { kind: "await-kubelet", sandboxId: id }, stop];
    case 2:
      return [...cure, stop];
    case 3:
      return [...cure, { kind: "remove-sandbox", sandboxId: id }, ...sweepAfter(id, about)];
  }
}

/** An operation on it failed, and its network is still held: the obstacle may be gone, but nothing retried. */
function failsToStop({ class: id }: Finding, sandbox: Sandbox, { reportedFailed }: Known): boolean {
  return classById(id)?.category === "removal-fails" && reportedFailed.has(sandbox.id);
}

function sandboxesReportedFailed({ snapshot }: NodeView): ReadonlySet<SandboxId | undefined> {
  const failures = runtimeReports(snapshot).filter((report) => report.kind === "failed");
  return new Set(failures.map(({ sandboxId }) => sandboxId));
}

function ladderCase(finding: Finding, sandbox: Sandbox, known: Known, policy: HealPolicy): LadderCase {
  const { view, retained } = known;
  const about = view.about(sandbox.id);
  const attemptReused = reusesAttempts(finding.class);
  return {
    provenDead: known.dead.has(sandbox.id),
    optedOut: isOptedOut(sandbox, view),
    // A pod that ended orderly cannot be distinguished from a shutdown: then only an observed error counts.
    retained: retained.has(sandbox.id) && (!attemptReused || endedInOrder(about)),
    obstacle: finding.cure.length > 0 || failsToStop(finding, sandbox, known),
    kubeletAlive: isKubeletAlive(view),
    kubeletFollows: policy.kubeletFollows === true,
    outlastedMinAge: !isRecovering({ sandbox }, view),
    pod: podPresence(sandbox, view),
    whyUnasked: whyUnasked(view),
    controlPlane: isControlPlane(sandbox, about),
    neverCreated: wasNeverCreated(sandbox),
    holdsBlockedName: known.heldNames.has(sandbox.id),
    attemptReused,
    clockDoubt: known.clockDoubt,
    hasContainers: about.containers.length > 0,
    diedWithNode: predatesStart(sandbox, view) !== undefined || about.containers.some(endWasLost),
    allDead: policy.allDead,
  };
}

/** Static pods and host-network pods of the system, which the cluster depends on. */
function isControlPlane(sandbox: Sandbox, { metadata }: AboutId): boolean {
  if (isStatic(sandbox)) return true;
  return metadata?.hostNetwork === true && sandbox.pod.namespace === "kube-system";
}

/** `--all-dead`: treats dead sandboxes without a finding as findings. */
function sweptFindings({ dead, findings }: Diagnosis): readonly Finding[] {
  const explained = new Set(findings.map(({ subject }) => sandboxIdOf(subject)));
  return dead
    .filter(({ sandbox }) => !explained.has(sandbox.id))
    .map((candidate) => ({
      ...toFinding(
        classThatAdopts("all-dead"),
        sandboxDetected(candidate, {
          severity: "info",
          summary: "dead and rightly kept; removed because --all-dead asks for it",
          evidence: [{ source: "cri", fact: (candidate.retained ?? NOT_STUCK).text }],
        }),
      ),
      treatment: { automatic: true, reversible: false, steps: ["Save its logs.", "Remove it over CRI."] },
    }));
}
