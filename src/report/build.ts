import { classById } from "../classes/index.ts";
import type { Diagnosis } from "../diagnose/diagnose.ts";
import { type UnreadClass, unreadClasses } from "../diagnose/verdict.ts";
import { crashLoops } from "../evidence/crash-loops.ts";
import { endWasLost } from "../evidence/ending.ts";
import type { Finding } from "../evidence/finding.ts";
import { STEPS, type StepKind, type StepOf } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import type { FailuresByFinding } from "../heal/journal/earlier-failures.ts";
import type { Healing } from "../heal/pipeline.ts";
import type { ActionResult } from "../heal/run-action.ts";
import { type Source, valueOr } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { FOREIGN_PID_NAMESPACE, WANTS_HOST_PID } from "../node/machine.ts";
import { isFullId, type PodRef } from "../node/types/ids.ts";
import type { KernelFacts, Snapshot } from "../node/types/snapshot.ts";
import type { LeftAlone } from "../plan/plan.ts";
import type { NodeReport, ReportedAction, ReportedFinding, SINCE_SOURCES } from "./node-report.ts";
import { pendingKey, reportedCreation, reportedPending } from "./pending.ts";

/** Builds the report from snapshot and diagnosis. */
export function buildReport(snapshot: Snapshot, diagnosis: Diagnosis): NodeReport {
  const sandboxes = snapshot.cri.status === "read" ? snapshot.cri.value.sandboxes : [];
  const ready = sandboxes.filter((sandbox) => sandbox.state === "ready").length;
  const boot = snapshot.boot.status === "read" ? snapshot.boot.value : undefined;
  const { name, version, endpoint, reachable } = snapshot.runtime;
  const { source, error } = snapshot.kubernetes;
  return {
    apiVersion: "unghost.dev/v1",
    kind: "NodeReport",
    node: snapshot.node,
    observedAt: snapshot.observedAt.toISOString(),
    verdict: diagnosis.verdict,
    runtime: { name, version, endpoint, reachable },
    kubernetes: error === undefined ? { source } : { source, error },
    boot: { id: boot?.id ?? "", startedAt: boot?.startedAt.toISOString() ?? "" },
    sandboxes: { total: sandboxes.length, ready, notReady: sandboxes.length - ready },
    ...(snapshot.kernel?.status === "read" ? { kernel: kernelCounts(snapshot.kernel.value) } : {}),
    crashLoops: loopCounts(diagnosis),
    podCreation: reportedCreation(diagnosis.podCreation),
    findings: inReadingOrder(diagnosis.findings).map((finding) => reportedFinding(finding, diagnosis.view)),
    pending: diagnosis.pending
      .map(reportedPending)
      .toSorted((one, other) => compare(pendingKey(one), pendingKey(other))),
    kept: diagnosis.kept
      .map(({ sandboxId, pod, reason: { code, text } }) => ({ sandboxId, pod, reason: text, code }))
      .toSorted((one, other) => compare(podName(one.pod), podName(other.pod))),
    problems: [...problemsIn(snapshot), ...unreadAsked(diagnosis.view)],
    advice: diagnosis.advice,
    notKnown: diagnosis.notKnown?.length ? diagnosis.notKnown : undefined,
  };
}

/** The report with how often healing each finding has failed, and what follows. */
export function withFailedHeals(report: NodeReport, failures: FailuresByFinding): NodeReport {
  if (failures.size === 0) return report;
  return { ...report, findings: report.findings.map((one) => ({ ...one, failedHeals: failures.get(one.id) })) };
}

/** A finding in the report's format, without the fields that only the plan needs. */
export function reportedFinding(found: Finding, view: NodeView): ReportedFinding {
  const { id, class: classId, severity, subject, summary, evidence, blocks, treatment } = found;
  return { id, class: classId, severity, subject, summary, evidence, blocks, treatment, ...impactOf(found, view) };
}

function kernelCounts({ stalls, hungTasks, netdeviceWaits, sinceBoot }: KernelFacts): NodeReport["kernel"] {
  return { stalls: stalls.count, hungTasks: hungTasks.count, netdeviceWaits: netdeviceWaits.count, sinceBoot };
}

function loopCounts({ view }: Diagnosis): NodeReport["crashLoops"] {
  const loops = crashLoops(view);
  return {
    pods: new Set(loops.map(({ pod }) => pod.uid)).size,
    restartsSinceBoot: loops.reduce((sum, { restartsSinceBoot }) => sum + restartsSinceBoot, 0),
  };
}

/** The pods that are deleted so that their controllers create them again. */
function restartsOf(
  action: ActionResult["action"],
  undone: ActionResult["undone"] = [],
): Pick<ReportedAction, "restarts"> {
  const restarts = [...action.steps, ...(action.followUps ?? [])].flatMap((step) =>
    step.kind === "kick-pod" && !undone.includes(step)
      ? [{ namespace: step.namespace, name: step.name, uid: step.uid }]
      : [],
  );
  return restarts.length === 0 ? {} : { restarts };
}

/** The report is of the scan after the heal: what happens without further steps happens this long after it, at the latest. */
function expectation({ aftermath }: Finding, { observedAt }: NodeReport): string | undefined {
  if (aftermath === undefined) return undefined;
  const latest = new Date(Date.parse(observedAt) + aftermath.withinMs).toISOString().replace(/\.\d+Z$/, "Z");
  return `${aftermath.text}: by ${latest}`;
}

/** Adds the actions, executed or planned, to the current report. */
export function withHealing(report: NodeReport, results: readonly ActionResult[]): NodeReport {
  return {
    ...report,
    actions: results.map(({ action, outcome, code, journalId, undone, logsSavedTo, undo, seconds, ...result }) => ({
      finding: action.finding.id,
      action: [...action.steps, ...(action.followUps ?? [])].map(({ kind }) => kind).join(", ") || "none",
      outcome,
      ...restartsOf(action, undone),
      expect: outcome === "healed" ? expectation(action.finding, report) : undefined,
      reason: result.reason,
      code,
      journalId,
      logsSavedTo,
      undo,
      seconds,
    })),
    remaining: report.findings.map(({ id }) => id),
  };
}

/** By class as diagnosed, worst first; within a class by pod, because the runtime's list has no stable order. */
function inReadingOrder(findings: readonly Finding[]): readonly Finding[] {
  const byClass = Map.groupBy(findings, (finding) => finding.class);
  return [...byClass.values()].flatMap((group) => {
    const keyed = group.map((finding) => ({ finding, key: readingKey(finding) }));
    return keyed.toSorted((one, other) => compare(one.key, other.key)).map(({ finding }) => finding);
  });
}

function readingKey({ subject, id }: Finding): string {
  const pod = "pod" in subject ? subject.pod : undefined;
  return pod === undefined ? id : `${podName(pod)}/${id}`;
}

function podName({ namespace, name }: PodRef): string {
  return `${namespace}/${name}`;
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

const NEXT_OF_UNREAD = {
  kubernetes: "use credentials that may read it: --kubeconfig FILE",
  logs: "search the logs: unghost explain --journal",
} satisfies Record<UnreadClass["in"], string>;

/** What was asked for by name, and could not be judged. */
function unreadAsked({ snapshot, policy }: NodeView): NodeReport["problems"] {
  return unreadClasses(snapshot, policy).map(({ id, why, in: source }) => ({
    source,
    problem: `whether there is a ${id} is unknown: ${why}`,
    next: NEXT_OF_UNREAD[source],
  }));
}

/** Sources that should have been readable and were not, and their skipped entries. */
export function problemsIn(snapshot: Snapshot): NodeReport["problems"] {
  const sources: readonly (readonly [string, Source<unknown>])[] = [
    ["boot", snapshot.boot],
    ["cri", snapshot.cri],
    ["containerd", snapshot.containerd],
    ["cni configuration", snapshot.cni.conf],
    ["cni results", snapshot.cni.results],
    ["multus cache", snapshot.cni.multus],
    ["flannel scratch", snapshot.cni.flannel],
    ["host-local leases", snapshot.cni.hostLocal],
    ["network namespaces", snapshot.netns],
    ["processes", snapshot.processes],
    ["logs", snapshot.logs],
  ];
  const { error } = snapshot.kubernetes;
  const kubernetes = error === undefined ? [] : [{ source: "kubernetes", problem: error }];
  const others = sources.flatMap(([name, source]) => {
    if (source.status === "failed") {
      const { message, next, code } = source.error;
      const more = { next, code };
      return [{ source: name, problem: message, ...more }];
    }
    if (source.status === "absent") return [];
    return source.oddities.map(({ path, code, ...odd }) => ({ source: name, problem: `${path}: ${odd.reason}`, code }));
  });
  const hangsMs = snapshot.cri.status === "read" ? snapshot.cri.value.statusHangsMs : undefined;
  const status =
    hangsMs === undefined
      ? []
      : [
          {
            source: "cri",
            problem: `Status was not answered within ${hangsMs / 1000}s, while the lists were`,
            next: "find the CNI plugin process that hangs: its call holds the runtime's CNI lock",
          },
        ];
  return [...mountProblems(snapshot), ...kubernetes, ...status, ...others, ...namespaceProblem(snapshot)];
}

function mountProblems({ hungMounts = [] }: Snapshot): NodeReport["problems"] {
  return hungMounts.map(({ point, type }) => ({
    source: "mounts",
    problem: `the file system mounted at ${printable(point)} (${printable(type)}) does not answer: nothing below it was read`,
    next: `check its server, or unmount it: umount --lazy ${printable(point)}`,
  }));
}

function namespaceProblem({ pidNamespace }: Snapshot): NodeReport["problems"] {
  if (pidNamespace === undefined || pidNamespace.kind === "own") return [];
  const problem = `no hung process can be ended: ${pidNamespace.reason}`;
  return [{ source: "processes", problem, code: FOREIGN_PID_NAMESPACE, next: WANTS_HOST_PID }];
}

/** The finding that a run is healing, shown instead of what a scan found about the same sandbox. */
export type TreatedAs = (sandboxId: string, found: ReportedFinding) => ReportedFinding | undefined;

/**
 * A scan during a heal sees intermediate states: with its corrupt cache quarantined, a sandbox is only dead, and once
 * it is removed its address counts as leaked for a moment. All findings of a sandbox that is being healed are replaced
 * by the finding that is being healed, counted once. Nothing is left out: a sandbox with findings before has one after.
 */
export function asBeingHealed(report: NodeReport, treatedAs: TreatedAs): NodeReport {
  const findings = new Map<string, ReportedFinding>();
  for (const finding of report.findings) {
    const sandboxId = sandboxOf(finding);
    const treated = sandboxId === undefined ? undefined : treatedAs(sandboxId, finding);
    const shown = treated === undefined || treated.id === finding.id ? finding : treated;
    if (!findings.has(shown.id) || shown === finding) findings.set(shown.id, shown);
  }
  return { ...report, findings: [...findings.values()] };
}

/** The sandbox of a finding, including one that is gone. containerd's leases have the sandbox's id. */
export function sandboxOf({ subject }: Pick<ReportedFinding, "subject">): string | undefined {
  const { sandboxId, name = "" } = subject;
  return sandboxId ?? (isFullId(name) ? name : undefined);
}

/** What was done, and why the rest was skipped. */
export function healingReport({
  snapshot,
  diagnosis,
  plan,
  results,
}: Pick<Healing, "snapshot" | "diagnosis" | "plan" | "results">): NodeReport {
  const tried = new Set(results.map(({ action }) => action.finding.id));
  const left = plan.leftAlone.filter(({ finding }) => !tried.has(finding.id)).map(skipped);
  return withHealing(buildReport(snapshot, diagnosis), [...results, ...left]);
}

function skipped({ finding, reason: why }: LeftAlone): ActionResult {
  const action = { finding, rank: "rest", steps: [], reason: why, lane: finding.id } as const;
  return { action, outcome: "skipped", reason: why.text, code: why.code, seconds: 0 };
}

/** Data of a finding for the table. */
function impactOf(
  finding: Finding,
  view: NodeView,
): Pick<ReportedFinding, "kind" | "since" | "sinceSource" | "blockedPods" | "terminatingPods" | "blockedAddresses"> {
  const since = sinceOf(finding, view);
  const addresses = addressesOf(finding);
  const pods = blockedPodsOf(finding);
  const { terminatingPods = [] } = finding;
  return {
    kind: kindOf(finding),
    since: since?.at.toISOString(),
    sinceSource: since?.source,
    blockedPods: pods.length === 0 ? undefined : pods,
    terminatingPods: terminatingPods.length === 0 ? undefined : terminatingPods,
    ...(addresses === 0 ? {} : { blockedAddresses: addresses }),
  };
}

/** A ghost is about a sandbox; a leak has no owner. */
function kindOf({ class: classId, subject }: Finding): ReportedFinding["kind"] {
  if (classById(classId)?.category === "leak" || subject.type === "container") return "leak";
  return "sandboxId" in subject && subject.sandboxId !== undefined ? "ghost" : "other";
}

function blockedPodsOf({ blockedPods, blocks, subject }: Finding): NonNullable<Finding["blockedPods"]> {
  if (blockedPods !== undefined) return blockedPods;
  // A record in the database prevents the runtime's start, not only its pod.
  const pod = subject.type === "sandbox" || subject.type === "process" ? subject.pod : undefined;
  return pod === undefined || blocks.length === 0 ? [] : [{ namespace: pod.namespace, name: pod.name }];
}

function addressesOf({ cure }: Finding): number {
  return cure.reduce((sum, step) => sum + freedBy(step), 0);
}

function freedBy<Kind extends StepKind>(step: StepOf<Kind>): number {
  return STEPS[step.kind].addresses?.(step) ?? 0;
}

export interface Since {
  readonly at: Date;
  readonly source: (typeof SINCE_SOURCES)[number];
}

/** Since when the state exists, by the best source of the node. Only informational: no decision uses it. */
export function sinceOf({ subject }: Finding, view: NodeView): Since | undefined {
  const now = view.snapshot.observedAt.getTime();
  if (subject.type === "process") {
    const plugins = valueOr(view.snapshot.processes, undefined)?.plugins ?? [];
    const seconds = plugins.find(({ pid }) => pid === subject.pid)?.ageSeconds;
    return seconds === undefined ? undefined : { at: new Date(now - seconds * 1000), source: "process" };
  }
  const id = "sandboxId" in subject ? subject.sandboxId : undefined;
  const written = id === undefined ? writtenAt(subject, view) : tracesOf(id, view);
  const signs = id === undefined ? [] : signsOf(id, view);
  if (signs.length > 0) return sinceSigns(id ?? "", Math.max(...signs), view);
  return written.length === 0 ? undefined : { at: new Date(Math.max(...written)), source: "written" };
}

/** A sandbox does not survive a boot. The next runtime sets the end time of every container that it misses. */
function sinceSigns(id: string, lastSign: number, view: NodeView): Since {
  const boot = valueOr(view.snapshot.boot, undefined)?.startedAt.getTime();
  const own = view
    .about(id)
    .containers.filter(endWasLost)
    .flatMap(({ exit }) => plausible(view, exit?.finishedAt));
  if (own.length > 0) return { at: new Date(Math.max(lastSign, ...own)), source: "runtime-start" };
  if (boot === undefined || lastSign >= boot) return { at: new Date(lastSign), source: "last-sign" };
  const starts = runtimeStarts(view).filter((start) => start > lastSign);
  if (starts.length > 0) return { at: new Date(Math.min(...starts)), source: "runtime-start" };
  return { at: new Date(boot), source: "boot" };
}

/** Starts of the runtime at which containers of any sandbox were lost. */
function runtimeStarts(view: NodeView): readonly number[] {
  const containers = valueOr(view.snapshot.cri, undefined)?.containers ?? [];
  return containers.filter(endWasLost).flatMap(({ exit }) => plausible(view, exit?.finishedAt));
}

/** Its creation, and the ends of its containers. */
function signsOf(id: string, view: NodeView): readonly number[] {
  const { sandbox, containers, record, storeRecord } = view.about(id);
  return [
    ...plausible(view, sandbox?.createdAt),
    ...containers.flatMap(({ exit, createdAt }) => plausible(view, exit?.finishedAt ?? createdAt)),
    ...plausible(view, record?.createdAt),
    ...plausible(view, storeRecord?.createdAt),
  ];
}

/** Times of network files of a sandbox without any other trace. */
function tracesOf(id: string, view: NodeView): readonly number[] {
  const { leases, results, multus, flannel } = view.about(id);
  return [...leases, ...results, multus, flannel].flatMap((file) => plausible(view, file?.modifiedAt));
}

function writtenAt(subject: Finding["subject"], view: NodeView): readonly number[] {
  const { snapshot } = view;
  switch (subject.type) {
    case "netns":
      return plausible(view, valueOr(snapshot.netns, []).find(({ path }) => path === subject.path)?.modifiedAt);
    case "lease":
      return plausible(
        view,
        valueOr(snapshot.containerd, undefined)?.leases.find(({ id }) => id === subject.name)?.createdAt,
      );
    case "file": {
      const leases = valueOr(snapshot.cni.hostLocal, []).flatMap((network) => network.leases);
      return leases.flatMap((lease) => (lease.path === subject.path ? plausible(view, lease.modifiedAt) : []));
    }
    default:
      return [];
  }
}

/** Go's zero time and times in the future are ignored. */
function plausible({ snapshot }: NodeView, time: Date | bigint | undefined): readonly number[] {
  if (time === undefined) return [];
  const milliseconds = typeof time === "bigint" ? Number(time / 1_000_000n) : time.getTime();
  return milliseconds > 0 && milliseconds <= snapshot.observedAt.getTime() ? [milliseconds] : [];
}
