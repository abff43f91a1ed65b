import { valueOr } from "../host/source.ts";
import { type LogEnvelope, parseEnvelope, unquoteGo } from "../logs/envelope.ts";
import { isFullId, type SandboxId } from "../node/types/ids.ts";
import type { LogLine, Snapshot } from "../node/types/snapshot.ts";

/** Words in lines about a pod's network or sandbox: other programs share many phrases with CNI plugins. */
export const cniContext =
  /pod ?sandbox|(?:for|of|stop) sandbox|sandbox (?:container|[0-9a-f]{8})|plugin type=|networkplugin cni|multus|delegate(?:add|del)|conflist(?:add|del)|(?:add|del)network|cmd(?:add|del)\b|cni (?:add|del|request|network)|failed \((?:add|delete)\)|(?:from|to) network \S|cni\.go|clusterinformation/;

/** The runtime itself is down: then an error about a sandbox has no meaning. */
export const runtimeUnreachable =
  /(?:containerd|crio|dockershim|cri-dockerd|docker|isulad|frakti)\.sock: connect|npipe|runtime service .{0,40}unavailable desc = connection/;

/** klog: severity, month and day, local time. */
const KLOG = /^[IWEF](\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{3})/;
/** containerd and CRI-O, as text or as JSON. */
const LOGRUS = /^(?:\{.{0,2000}?"time":|time=)"(\d{4}-\d\d-\d\dT[\d:.]{8,20}(?:Z|[+-]\d\d:\d\d))"/;
/** kubelet with --logging-format=json. */
const KLOG_JSON = /^\{"ts":(\d{10,13}(?:\.\d{1,6})?),/;

/** The time in a line, as its writer recorded it. */
export function lineTime(line: string, now: Date): Date | undefined {
  const klog = KLOG.exec(line);
  if (klog !== null) return klogTime(klog, now);
  const logrus = LOGRUS.exec(line)?.[1];
  if (logrus !== undefined) return validDate(new Date(logrus));
  const json = KLOG_JSON.exec(line)?.[1];
  return json === undefined ? undefined : validDate(new Date(Number(json)));
}

const DAY_MS = 86_400_000;

/** klog omits the year: a date more than a day in the future is from last year. */
function klogTime(match: RegExpExecArray, now: Date): Date | undefined {
  const [month = 0, day = 0, hours = 0, minutes = 0, seconds = 0, milliseconds = 0] = match.slice(1).map(Number);
  const at = new Date(now.getFullYear(), month - 1, day, hours, minutes, seconds, milliseconds);
  if (at.getTime() - now.getTime() > DAY_MS) at.setFullYear(now.getFullYear() - 1);
  return validDate(at);
}

function validDate(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date;
}

/**
 * Reports of the runtime or kubelet. Only these may decide: the operation and the sandbox come from the message or
 * field that the writer itself fills, and the error is the complete error field. Text that a pod chose may be quoted
 * inside an error, but never at its start.
 */
export type RuntimeReport = FailedOperation | ReleasedNetwork | RejectedConfig;

export interface FailedOperation {
  readonly kind: "failed";
  readonly operation: "run" | "stop" | "remove";
  /** The sandbox for which it failed. A refused creation has none. */
  readonly sandboxId?: SandboxId;
  /** The runtime's error, without gRPC's "rpc error". */
  readonly error: string;
  readonly line: LogLine;
}

/** DEL has succeeded: earlier reports are obsolete. */
export interface ReleasedNetwork {
  readonly kind: "network-released";
  readonly sandboxId: SandboxId;
  readonly line: LogLine;
}

/** CRI-O read the network configuration and found something missing. */
export interface RejectedConfig {
  readonly kind: "config-rejected";
  readonly error: string;
  readonly line: LogLine;
}

const reports = new WeakMap<Snapshot, readonly RuntimeReport[]>();

/** Oldest first. Computed once per snapshot, because several classes need it. */
export function runtimeReports(snapshot: Snapshot): readonly RuntimeReport[] {
  const known = reports.get(snapshot);
  if (known !== undefined) return known;
  const lines = valueOr(snapshot.logs, undefined)?.lines ?? [];
  const fresh = inOrderOfTime(
    lines.flatMap((line) => reportIn(line) ?? []),
    snapshot.observedAt,
  );
  reports.set(snapshot, fresh);
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

/** A cheap filter: every report contains one of these words. */
const PERHAPS = /sandbox|CNI config file/i;

export function reportIn(line: LogLine): RuntimeReport | undefined {
  if (!PERHAPS.test(line.text)) return undefined;
  const envelope = parseEnvelope(line.text);
  if (envelope === undefined) return undefined;
  return envelope.format === "klog" ? fromKubelet(envelope, line) : fromRuntime(envelope, line);
}

type Operation = FailedOperation["operation"];

const RUN_FAILED = /^RunPodSandbox for [^\n]{1,2000} failed, error$/;
const ENDING_FAILED = /^(Stop|Remove)PodSandbox for "([0-9a-f]{64})" failed$/;
const ROLLBACK_FAILED =
  /^(?:Failed to destroy network for sandbox|encountered an error cleaning up failed sandbox) "([0-9a-f]{64})"(?:, marking sandbox state as SANDBOX_UNKNOWN)?$/;
const EXIT_UNHANDLED =
  /^failed to handle sandbox TaskExit event (?:&TaskExit\{ContainerID:|container_id:")([0-9a-f]{64})[^0-9a-f]/;
const RELEASED = /^TearDown network for sandbox "([0-9a-f]{64})" successfully$/;
/** CRI-O writes errors into the message. */
const CLEANUP_FAILED = /^(?:Error stopping network on cleanup|Failed to (?:stop|remove) pod sandbox): ([^]+)$/;
const CONFIG_REJECTED = /^Error validating CNI config file(?: [^\s:]{1,300})?: \[([^]+)\]$/;

function fromRuntime({ level, message, error }: LogEnvelope, line: LogLine): RuntimeReport | undefined {
  const released = level === "info" ? RELEASED.exec(message)?.[1] : undefined;
  if (released !== undefined && isFullId(released)) return { kind: "network-released", sandboxId: released, line };
  if (level !== "error" && level !== "warning") return undefined;
  if (error === undefined) return fromCrio(message, line);
  if (RUN_FAILED.test(message)) return failed("run", idAtStart(error), error, line);
  const [, ending, ended] = ENDING_FAILED.exec(message) ?? [];
  if (ended !== undefined) return failed(ending === "Stop" ? "stop" : "remove", ended, error, line);
  const notEnded = (ROLLBACK_FAILED.exec(message) ?? EXIT_UNHANDLED.exec(message))?.[1];
  return notEnded === undefined ? undefined : failed("stop", notEnded, error, line);
}

function fromCrio(message: string, line: LogLine): RuntimeReport | undefined {
  const rejected = CONFIG_REJECTED.exec(message)?.[1];
  if (rejected !== undefined) return { kind: "config-rejected", error: rejected, line };
  const error = CLEANUP_FAILED.exec(message)?.[1];
  const id = error === undefined ? undefined : idAtStart(error);
  return error === undefined || id === undefined ? undefined : failed("stop", id, error, line);
}

/** kubelet's messages, and the field with the sandbox id. */
const KUBELET: Readonly<Record<string, { readonly operation: Operation; readonly idField?: string }>> = {
  "RunPodSandbox from runtime service failed": { operation: "run" },
  "Failed to create sandbox for pod": { operation: "run" },
  "CreatePodSandbox for pod failed": { operation: "run" },
  "StopPodSandbox from runtime service failed": { operation: "stop", idField: "podSandboxID" },
  "RemovePodSandbox from runtime service failed": { operation: "remove", idField: "podSandboxID" },
  "Failed to stop sandbox before removing": { operation: "stop", idField: "sandboxID" },
  "Failed to remove sandbox": { operation: "remove", idField: "sandboxID" },
};

function fromKubelet({ message, error, fields }: LogEnvelope, line: LogLine): RuntimeReport | undefined {
  if (error === undefined) return undefined;
  if (message === "Error syncing pod, skipping") return fromPodWorker(error, line);
  const known = Object.hasOwn(KUBELET, message) ? KUBELET[message] : undefined;
  const answer = answerOf(error);
  if (known === undefined || answer === undefined) return undefined;
  const { operation, idField } = known;
  const id = idField === undefined ? idAtStart(answer) : (fields.get(idField) ?? idAtStart(answer));
  return failed(operation, id, answer, line);
}

const SYNC_FAILED = /^failed to "(CreatePodSandbox|KillPodSandbox)" for "[^"\\]{1,600}" with \1Error: ("[^]*")$/;
const POD_PREFIX = /^Failed to create sandbox for pod "[^"\\]{1,600}": /;

/** The pod worker quotes only the failed step in its own error. */
function fromPodWorker(error: string, line: LogLine): RuntimeReport | undefined {
  const [, step, quoted] = SYNC_FAILED.exec(error) ?? [];
  const text = quoted === undefined ? undefined : unquoteGo(quoted);
  if (step === undefined || text === undefined) return undefined;
  const answer = answerOf(text.replace(POD_PREFIX, ""));
  if (answer === undefined) return undefined;
  return failed(step === "KillPodSandbox" ? "stop" : "run", idAtStart(answer), answer, line);
}

const RPC_ERROR = /^rpc error: code = \w{1,30} desc = /;

/** The runtime's answer, if the error contains one. */
function answerOf(error: string): string | undefined {
  const prefix = RPC_ERROR.exec(error)?.[0];
  return prefix === undefined ? undefined : error.slice(prefix.length);
}

const ID_AT_START = new RegExp(
  [
    '^failed to (?:destroy|setup) network for sandbox "([0-9a-f]{64})": ',
    "^failed to (?:destroy network for pod sandbox|create pod network sandbox) k8s_[^\\s()]{1,600}\\(([0-9a-f]{64})\\): ",
  ].join("|"),
);

/** The sandbox id that the runtime itself writes before any quoted text. */
function idAtStart(error: string): string | undefined {
  const [, containerd, crio] = ID_AT_START.exec(error) ?? [];
  return containerd ?? crio;
}

function failed(operation: Operation, id: string | undefined, error: string, line: LogLine): FailedOperation {
  const named = id !== undefined && isFullId(id) ? { sandboxId: id } : {};
  return { kind: "failed", operation, ...named, error: error.replace(RPC_ERROR, ""), line };
}
