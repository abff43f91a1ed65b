import { isFailing, type Pending, type PodCreation, type WaitsFor } from "../evidence/pending.ts";
import { durationInWords, printable } from "../host/text.ts";
import type { NodeReport, ReportedPending } from "./node-report.ts";
import { CANNOT_CREATE } from "./node-state.ts";
import type { CommandLine } from "./words.ts";

type ReportedCreation = NonNullable<NodeReport["podCreation"]>;

export function reportedPending({
  since,
  waitsFor,
  reported,
  becomesFindingAt,
  pod,
  ...rest
}: Pending): ReportedPending {
  return {
    ...rest,
    pod,
    since: since.toISOString(),
    waitsFor: waitsFor === undefined ? undefined : flat(waitsFor),
    reported: reported.map(({ at, ...one }) => ({ ...one, at: at?.toISOString() })),
    becomesFindingAt: becomesFindingAt?.toISOString(),
  };
}

function flat(waitsFor: WaitsFor): NonNullable<ReportedPending["waitsFor"]> {
  return waitsFor.kind === "lock" ? { kind: "lock", ...waitsFor.holder } : { ...waitsFor };
}

export function reportedCreation({ able, lastSuccess, lastFailure, blockedPods }: PodCreation): ReportedCreation {
  return {
    able,
    lastSuccess: lastSuccess && { at: lastSuccess.at.toISOString(), pod: lastSuccess.pod },
    lastFailure: lastFailure && reportedFailure(lastFailure),
    blockedPods,
  };
}

function reportedFailure({ at, pod, ...rest }: NonNullable<PodCreation["lastFailure"]>) {
  return { ...rest, at: at?.toISOString(), pod };
}

/** While a node starts, the first attempt of many pods fails because the pod network is not up yet. */
const START_MS = 180_000;
/** Kubelet has tried again several times. */
const RETRIED_MS = 60_000;

/** What fails and does not only fail once because the node has just booted. */
export function lastingFailures({
  pending = [],
  boot,
  observedAt,
}: Pick<NodeReport, "pending" | "boot" | "observedAt">): readonly ReportedPending[] {
  const failing = pending.filter(isFailing);
  const now = Date.parse(observedAt);
  const isStarting = now - Date.parse(boot.startedAt) < START_MS;
  if (!isStarting) return failing;
  return failing.filter(
    ({ reason, since }) => reason === "runtime-status-hanging" || now - Date.parse(since) >= RETRIED_MS,
  );
}

/** By reason and pod, because the runtime's list has no stable order. */
export function pendingKey({ reason, pod, sandboxId }: ReportedPending): string {
  return `${reason} ${podWords(pod)} ${sandboxId ?? ""}`;
}

export function podWords(pod: ReportedPending["pod"]): string {
  return pod === undefined ? "" : `${pod.namespace}/${pod.name}`;
}

/** Sandboxes that are kept on purpose: not pending, and not just being created, which is no NotReady sandbox yet. */
export function keptOnPurpose({ kept, pending = [] }: Pick<NodeReport, "kept" | "pending">): NodeReport["kept"] {
  const listed = new Set(pending.map(({ sandboxId }) => sandboxId));
  return kept.filter(({ sandboxId, code }) => !listed.has(sandboxId) && code !== "creation-in-flight");
}

const REASON_WORDS: Readonly<Record<ReportedPending["reason"], string>> = {
  "creation-in-flight": "sandbox creation in flight",
  "creation-overdue": "sandbox creation runs longer than kubelet waits,",
  "creation-stalled": "sandbox creation waits with others and none succeeds,",
  "creation-retrying": "sandbox creation retried after a failure",
  "creation-failing": "sandbox creation fails",
  "creation-waiting": "waits for its sandbox",
  "creation-held": "waits for its sandbox",
  "removal-in-flight": "sandbox removal in flight",
  "removal-overdue": "sandbox removal runs longer than kubelet waits,",
  "removal-failing": "sandbox removal fails",
  "runtime-status-hanging": "the runtime does not answer Status",
};

/** `default/web-0: sandbox creation in flight for 2m, waits for pid 12 (multus-shim); becomes a finding in 8m` */
export function pendingLine(pending: ReportedPending, observedAt: string): string {
  const { reason, pod, since, waitsFor, reported, becomesFindingAt } = pending;
  const now = Date.parse(observedAt);
  const subject = pod === undefined ? "" : `${podWords(pod)}: `;
  const age = `for ${durationInWords((now - Date.parse(since)) / 1000)}`;
  const [last] = reported;
  const dueIn = becomesFindingAt === undefined ? 0 : (Date.parse(becomesFindingAt) - now) / 1000;
  const parts = [
    `${REASON_WORDS[reason]} ${age}${waitsFor === undefined ? "" : `, waits for ${waitWords(waitsFor)}`}`,
    ...(last === undefined ? [] : [`${last.by} reported ${last.code}${times(last.count)}: ${last.message}`]),
    ...(dueIn > 0 ? [`becomes a finding in ${durationInWords(dueIn)}`] : []),
  ];
  return printable(subject + parts.join("; "));
}

/** What waits for the same, with nothing reported about it, shares a line; a report names its own pod. */
export function alikePending(pending: readonly ReportedPending[]): readonly (readonly ReportedPending[])[] {
  const keyOf = (one: ReportedPending): string =>
    one.reported.length > 0 || one.pod === undefined
      ? pendingKey(one)
      : [one.reason, one.waitsFor?.kind, one.waitsFor?.command, one.waitsFor?.socket].join(" ");
  return [...Map.groupBy(pending, keyOf).values()];
}

/** The line of the first, and the pods of the others. */
export function alikeLine([first, ...others]: readonly ReportedPending[], observedAt: string): string {
  if (first === undefined) return "";
  if (others.length === 0) return pendingLine(first, observedAt);
  const more = others.length > NAMED_PODS ? ` and ${others.length - NAMED_PODS} more` : "";
  const names = others.slice(0, NAMED_PODS).map(({ pod }) => podWords(pod));
  return printable(`${pendingLine(first, observedAt)}; like it: ${names.join(", ")}${more}`);
}

/** For somebody who knows that what is in flight will never end; undefined where nothing waits for a grace. */
export function graceWords(pending: readonly ReportedPending[], command: CommandLine): string | undefined {
  if (!pending.some(({ becomesFindingAt }) => becomesFindingAt !== undefined)) return undefined;
  return `If you know that one of them is stuck, heal it before that: ${command("heal", "--inflight-grace", "0s", "--dry-run")}`;
}

function times(count: number): string {
  return count > 1 ? ` ${count} times` : "";
}

function waitWords({ kind, pid, command, socket, message }: NonNullable<ReportedPending["waitsFor"]>): string {
  const process = pid === undefined ? "" : `pid ${pid}${command === undefined ? "" : ` (${command})`}`;
  switch (kind) {
    case "plugin":
      return process;
    case "daemon":
      return `the daemon on ${socket ?? "its socket"}${process === "" ? "" : `, ${process}`}`;
    case "lock":
      return `the CNI lock, held by ${process}`;
    case "volume":
      return `a volume: ${message ?? ""}`;
    case "runtime":
      return "the runtime";
  }
}

/** Pods that cannot start: because of a finding, or of attempts that fail and are none yet. */
export function countBlocked({ findings, podCreation }: Pick<NodeReport, "findings" | "podCreation">): number {
  const pods = [...findings.flatMap(({ blockedPods = [] }) => blockedPods), ...(podCreation?.blockedPods ?? [])];
  return new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`)).size;
}

const PLUGIN_FAILED = /plugin type=\\?"([\w.-]{1,64})\\?"[^:]{0,120} failed \((add|delete)\)/;
/** Fewer equal failures may be chance. */
const FEWEST_EQUAL = 3;

/** The CNI plugin that most pods fail with alike; undefined if there is none. */
export function commonCause(pending: readonly ReportedPending[]): string | undefined {
  const failing = pending.filter(isFailing);
  const plugins = failing.flatMap(({ reported }) => {
    const [, type, verb] = reported.map(({ message }) => PLUGIN_FAILED.exec(message)).find((one) => one !== null) ?? [];
    return type === undefined || verb === undefined ? [] : [{ type, verb }];
  });
  const [most = []] = [...Map.groupBy(plugins, ({ type }) => type).values()].toSorted(
    (one, other) => other.length - one.length,
  );
  const [first] = most;
  if (first === undefined || most.length < FEWEST_EQUAL) return undefined;
  return `one cause: plugin ${first.type} fails for ${most.length} of ${failing.length}; repair what it reports, or remove it from the conflist if pods can do without it`;
}

const NAMED_PODS = 5;

/** `NO PODS START  12 pods wait: a, b, … ` for the first line; undefined if pods can be created. */
export function creationWords({ able, lastFailure, lastSuccess, blockedPods }: ReportedCreation): string | undefined {
  if (able !== "no") return undefined;
  const names = blockedPods.slice(0, NAMED_PODS).map(podWords).join(", ");
  const more = blockedPods.length > NAMED_PODS ? ` and ${blockedPods.length - NAMED_PODS} more` : "";
  const waiting = blockedPods.length === 0 ? "" : `; waiting: ${names}${more}`;
  const success = lastSuccess === undefined ? "" : `; last success ${lastSuccess.at}`;
  const failure = lastFailure === undefined ? "" : `; last failure (${lastFailure.code}): ${lastFailure.message}`;
  return printable(`${CANNOT_CREATE}${waiting}${success}${failure}`);
}
