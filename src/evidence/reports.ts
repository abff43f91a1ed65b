import { valueOr } from "../host/source.ts";
import { truncate } from "../host/text.ts";
import { parseEnvelope } from "../logs/envelope.ts";
import { type FailedOperation, type RuntimeReport, reportIn } from "../logs/reports.ts";
import { lineTime } from "../logs/time.ts";
import { isSamePod, type NamedPod, parseSandboxName } from "../node/types/ids.ts";
import type { PluginProcess, Sandbox } from "../node/types/runtime.ts";
import type { PodEvent, Snapshot } from "../node/types/snapshot.ts";
import type { Reported, ReportedCode } from "./pending.ts";
import type { NodeView } from "./view.ts";

const reportsOfSnapshot = new WeakMap<Snapshot, readonly RuntimeReport[]>();

/** Oldest first. Computed once per snapshot, because several classes need it. */
export function runtimeReports(snapshot: Snapshot): readonly RuntimeReport[] {
  const known = reportsOfSnapshot.get(snapshot);
  if (known !== undefined) return known;
  const lines = valueOr(snapshot.logs, undefined)?.lines ?? [];
  const fresh = inOrderOfTime(
    lines.flatMap((line) => reportIn(line) ?? []),
    snapshot.observedAt,
  );
  reportsOfSnapshot.set(snapshot, fresh);
  return fresh;
}

/**
 * The logs of the runtime and of kubelet are read one after the other. The order of each writer is kept: its clock may
 * have been set back in between, and a line without a time belongs to the previous one.
 */
function inOrderOfTime(unordered: readonly RuntimeReport[], now: Date): readonly RuntimeReport[] {
  const newest = new Map<string, number>();
  return unordered
    .map((report) => {
      const { place, text } = report.line;
      const writer = `${place} ${parseEnvelope(text)?.format === "klog" ? "kubelet" : "runtime"}`;
      const at = Math.max(newest.get(writer) ?? 0, lineTime(text, now)?.getTime() ?? 0);
      newest.set(writer, at);
      return { at, report };
    })
    .toSorted((one, other) => one.at - other.at)
    .map(({ report }) => report);
}

/** One failed call that kubelet, the runtime or the API server reported, and its subject. */
export interface CallReport extends Reported {
  readonly pod?: NamedPod;
  readonly sandboxId?: string;
}

/**
 * How long a failure counts as the current state of an existing pod. Kubelet times out RunPodSandbox after four minutes
 * (twice its runtimeRequestTimeout) and retries within seconds: a pod that still fails is reported again within that
 * time and a margin of one minute.
 */
const REPORT_FRESH_MS = 5 * 60_000;

const cache = new WeakMap<object, readonly CallReport[]>();

/** Failures from logs and events, oldest first. Computed once per snapshot. */
export function callReports({ snapshot }: Pick<NodeView, "snapshot">): readonly CallReport[] {
  const known = cache.get(snapshot);
  if (known !== undefined) return known;
  const events = snapshot.kubernetes.source === "api" ? (snapshot.kubernetes.events ?? []) : [];
  const failures = runtimeReports(snapshot).filter((report) => report.kind === "failed");
  const reports = [
    ...failures.map((failure) => reportOf(failure, snapshot.observedAt)),
    ...events.flatMap((event) => reportInEvent(event) ?? []),
  ].toSorted((one, other) => (one.at?.getTime() ?? 0) - (other.at?.getTime() ?? 0));
  cache.set(snapshot, reports);
  return reports;
}

/** A report from the future is from before a clock was set back, and may have any age. */
export function isFresh({ at }: Pick<Reported, "at">, { snapshot }: Pick<NodeView, "snapshot">): boolean {
  return at !== undefined && Math.abs(snapshot.observedAt.getTime() - at.getTime()) < REPORT_FRESH_MS;
}

/** What the pattern finds in the errors of calls that failed lately, as the runtime returned them. */
export function freshErrors(view: Pick<NodeView, "snapshot">, pattern: RegExp): readonly RegExpExecArray[] {
  const { observedAt } = view.snapshot;
  return runtimeReports(view.snapshot).flatMap((report) => {
    if (report.kind !== "failed" || !isFresh({ at: lineTime(report.line.text, observedAt) }, view)) return [];
    const match = pattern.exec(report.error);
    return match === null ? [] : [match];
  });
}

function reportOf({ by, operation, sandboxId, holder, pod, error, line }: FailedOperation, now: Date): CallReport {
  return {
    by,
    code: codeIn(error),
    operation: operation === "create-sandbox" ? "create" : "remove",
    at: lineTime(line.text, now),
    count: 1,
    message: truncate(error, LONGEST_MESSAGE),
    pod,
    sandboxId: sandboxId ?? holder,
  };
}

const EVENT_OPERATIONS: Readonly<Record<string, Reported["operation"]>> = {
  FailedCreatePodSandBox: "create",
  FailedMount: "create",
  FailedAttachVolume: "create",
  FailedKillPod: "remove",
};

/** Kubelet's text before the answer of the runtime. */
const EVENT_PREFIX = /^[^]{0,300}?rpc error: code = \w{1,30} desc = /;

function reportInEvent(event: PodEvent): CallReport | undefined {
  const { namespace, pod, uid, reason, message, count, at } = event;
  const operation = EVENT_OPERATIONS[reason];
  if (operation === undefined) return undefined;
  const error = message.replace(EVENT_PREFIX, "");
  return {
    by: "kubernetes",
    code: isAboutVolumes(event) ? "volume" : codeIn(error),
    operation,
    at,
    count,
    message: truncate(error, LONGEST_MESSAGE),
    pod: { namespace, name: pod, uid },
  };
}

export function isAboutVolumes({ reason }: PodEvent): boolean {
  return reason === "FailedMount" || reason === "FailedAttachVolume";
}

/** The runtime's own error is first in its answer; the caller's deadline is last. */
const CODES: readonly (readonly [RegExp, ReportedCode])[] = [
  [/^failed to reserve sandbox name /, "name-reserved"],
  [
    /dial (?:unix|tcp) \S{1,200} connect: (?:no such file|connection refused|permission denied)|daemon not reachable/i,
    "daemon-unreachable",
  ],
  [/deadline ?exceeded|timed out waiting for the condition/i, "deadline-exceeded"],
  [/context cancell?ed|error code: CANCEL/i, "canceled"],
  // The runtime kills a plugin together with the call that waits for it; an event quotes the complete error.
  [/^failed to (?:setup|destroy|create) (?:pod )?network[^]*: signal: killed"?$/i, "plugin-killed"],
  [/^failed to (?:setup|destroy|create) (?:pod )?network/i, "plugin-failed"],
];

function codeIn(error: string): ReportedCode {
  return CODES.find(([pattern]) => pattern.test(error))?.[1] ?? "other";
}

const LONGEST_MESSAGE = 300;

/** No answer in time. Kubelet's timeout is logged as such or as a canceled stream, and kills the plugin. */
export function isTimeout({ code }: Pick<Reported, "code">): boolean {
  return code === "deadline-exceeded" || code === "canceled" || code === "plugin-killed";
}

/**
 * Recent reports of kubelet or the cluster about stopping this sandbox, unless its network was released since. Without
 * the runtime's own reports, because a failed manual stop is not retried.
 */
export function removalReports({ id, pod }: Pick<Sandbox, "id" | "pod">, view: NodeView): readonly CallReport[] {
  const { namespace, name, uid } = pod;
  const own = callReports(view).filter((report) => {
    if (report.operation !== "remove" || report.by === "runtime" || !isFresh(report, view)) return false;
    if (report.sandboxId !== undefined) return report.sandboxId === id;
    return report.pod?.uid !== undefined && isSamePod(report.pod, { namespace, name, uid });
  });
  if (own.length === 0) return own;
  const releasedAt = networkReleasedAt(id, view);
  return own.filter(({ at }) => releasedAt === undefined || at === undefined || at > releasedAt);
}

/** Sandboxes that kubelet fails to stop with a report of the given cause. */
export function failingRemovals(view: NodeView, isOfCause: (report: CallReport) => boolean): readonly Sandbox[] {
  return view.sandboxes.filter((sandbox) => removalReports(sandbox, view).some(isOfCause));
}

/** When the runtime last logged a successful DEL for it. A stop that fails in a later step is reported after that. */
function networkReleasedAt(id: string, { snapshot }: NodeView): Date | undefined {
  const released = runtimeReports(snapshot).findLast(
    (report) => report.kind === "network-released" && report.sandboxId === id,
  );
  return released === undefined ? undefined : lineTime(released.line.text, snapshot.observedAt);
}

/** The pod of a plugin call, from the runtime, the records or the call itself. */
export function podOfCall({ sandboxId, pod }: PluginProcess, view: NodeView): readonly NamedPod[] {
  const { sandbox, metadata } = view.about(sandboxId);
  const known = sandbox?.pod ?? parseSandboxName(metadata?.name ?? "") ?? pod;
  return known === undefined ? [] : [known];
}

/** According to the API server: pods of this node without a Ready sandbox, and pods that are being deleted. */
export function podsWaitingForNetwork(view: NodeView): readonly NamedPod[] {
  const { snapshot, sandboxes } = view;
  if (snapshot.kubernetes.source !== "api") return [];
  const noVolume = new Set(
    callReports(view).flatMap((report) =>
      report.code === "volume" && isFresh(report, view) ? [`${report.pod?.namespace}/${report.pod?.name}`] : [],
    ),
  );
  const ofUid = Map.groupBy(sandboxes, ({ pod }) => pod.uid as string);
  return snapshot.kubernetes.pods.flatMap(({ namespace, name, uid, phase, terminating }) => {
    const own = ofUid.get(uid) ?? [];
    const isReady = own.some(({ state }) => state === "ready");
    const waits =
      terminating === true ? own.length > 0 : phase === "Pending" && !isReady && !noVolume.has(`${namespace}/${name}`);
    return waits && namespace !== undefined && name !== undefined ? [{ namespace, name, uid }] : [];
  });
}

/** Each pod once, by name. */
export function distinctPods(pods: readonly NamedPod[]): readonly NamedPod[] {
  const byName = new Map<string, NamedPod>();
  for (const { namespace, name, uid } of pods) {
    const key = `${namespace}/${name}`;
    const known = byName.get(key)?.uid ?? uid;
    byName.set(key, { namespace, name, uid: known });
  }
  return [...byName].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, pod]) => pod);
}

/** As many as fit into a line; the report lists all of them. */
const MAX_NAMED = 5;

export function podsInWords(pods: readonly NamedPod[]): string {
  const more = pods.length - MAX_NAMED;
  const names = pods.slice(0, MAX_NAMED).map(({ namespace, name }) => `${namespace}/${name}`);
  const named = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return pods.length === 1 ? `pod ${named}` : `${pods.length} pods: ${named}`;
}
