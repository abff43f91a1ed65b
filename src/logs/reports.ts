import { isFullId, type NamedPod, parseSandboxName, type SandboxId } from "../node/types/ids.ts";
import type { LogLine } from "../node/types/snapshot.ts";
import { type LogEnvelope, parseEnvelope, unquoteGo } from "./envelope.ts";
import type { Operation } from "./operation.ts";

/**
 * Reports of the runtime or kubelet. Only these may decide: the operation and the sandbox come from the message or
 * field that the writer itself fills, and the error is the complete error field. Text that a pod chose may be quoted
 * inside an error, but never at its start.
 */
export type RuntimeReport = FailedOperation | ReleasedNetwork | RejectedConfig;

export interface FailedOperation {
  readonly kind: "failed";
  readonly by: "kubelet" | "runtime";
  readonly operation: Extract<Operation, "create-sandbox" | "stop-sandbox" | "remove-sandbox">;
  /** The sandbox for which it failed. A refused creation has none. */
  readonly sandboxId?: SandboxId;
  /** The sandbox that holds the name which the runtime refused. */
  readonly holder?: string;
  /** From fields that the writer itself fills. */
  readonly pod?: NamedPod;
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

/** A cheap filter: every report contains one of these words. */
const PERHAPS = /sandbox|CNI config file/i;

export function reportIn(line: LogLine): RuntimeReport | undefined {
  if (!PERHAPS.test(line.text)) return undefined;
  const envelope = parseEnvelope(line.text);
  if (envelope === undefined) return undefined;
  const report = envelope.format === "klog" ? fromKubelet(envelope, line) : fromRuntime(envelope, line);
  if (report?.kind !== "failed") return report;
  const { error } = report;
  return {
    ...report,
    by: envelope.format === "klog" ? "kubelet" : "runtime",
    pod: podIn(envelope, error),
    holder: HOLDER.exec(error)?.[2],
  };
}

type FailedCall = FailedOperation["operation"];
/** Before its writer and its subject are added. */
type Failed = Omit<FailedOperation, "by" | "pod" | "holder">;
type Parsed = Failed | ReleasedNetwork | RejectedConfig;

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

function fromRuntime({ level, message, error }: LogEnvelope, line: LogLine): Parsed | undefined {
  const released = level === "info" ? RELEASED.exec(message)?.[1] : undefined;
  if (released !== undefined && isFullId(released)) return { kind: "network-released", sandboxId: released, line };
  if (level !== "error" && level !== "warning") return undefined;
  if (error === undefined) return fromCrio(message, line);
  if (RUN_FAILED.test(message)) return failed("create-sandbox", idAtStart(error), error, line);
  const [, ending, ended] = ENDING_FAILED.exec(message) ?? [];
  if (ended !== undefined) return failed(ending === "Stop" ? "stop-sandbox" : "remove-sandbox", ended, error, line);
  const notEnded = (ROLLBACK_FAILED.exec(message) ?? EXIT_UNHANDLED.exec(message))?.[1];
  return notEnded === undefined ? undefined : failed("stop-sandbox", notEnded, error, line);
}

function fromCrio(message: string, line: LogLine): Parsed | undefined {
  const rejected = CONFIG_REJECTED.exec(message)?.[1];
  if (rejected !== undefined) return { kind: "config-rejected", error: rejected, line };
  const error = CLEANUP_FAILED.exec(message)?.[1];
  const id = error === undefined ? undefined : idAtStart(error);
  return error === undefined || id === undefined ? undefined : failed("stop-sandbox", id, error, line);
}

/** kubelet's messages, and the field with the sandbox id. */
const KUBELET: Readonly<Record<string, { readonly operation: FailedCall; readonly idField?: string }>> = {
  "RunPodSandbox from runtime service failed": { operation: "create-sandbox" },
  "Failed to create sandbox for pod": { operation: "create-sandbox" },
  "CreatePodSandbox for pod failed": { operation: "create-sandbox" },
  "StopPodSandbox from runtime service failed": { operation: "stop-sandbox", idField: "podSandboxID" },
  "RemovePodSandbox from runtime service failed": { operation: "remove-sandbox", idField: "podSandboxID" },
  "Failed to stop sandbox before removing": { operation: "stop-sandbox", idField: "sandboxID" },
  "Failed to remove sandbox": { operation: "remove-sandbox", idField: "sandboxID" },
};

function fromKubelet({ message, error, fields }: LogEnvelope, line: LogLine): Parsed | undefined {
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
function fromPodWorker(error: string, line: LogLine): Parsed | undefined {
  const [, step, quoted] = SYNC_FAILED.exec(error) ?? [];
  const text = quoted === undefined ? undefined : unquoteGo(quoted);
  if (step === undefined || text === undefined) return undefined;
  const answer = answerOf(text.replace(POD_PREFIX, ""));
  if (answer === undefined) return undefined;
  return failed(step === "KillPodSandbox" ? "stop-sandbox" : "create-sandbox", idAtStart(answer), answer, line);
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

function failed(operation: FailedCall, id: string | undefined, error: string, line: LogLine): Failed {
  const named = id !== undefined && isFullId(id) ? { sandboxId: id } : {};
  return { kind: "failed", operation, ...named, error: error.replace(RPC_ERROR, ""), line };
}

const HOLDER = /^failed to reserve sandbox name "([^"\\]{1,600})": .{1,700} is reserved for "([0-9a-f]{64})"$/;

const METADATA =
  /^RunPodSandbox for &PodSandboxMetadata\{Name:([^,{}]{1,253}),Uid:([^,{}]{1,253}),Namespace:([^,{}]{1,253}),Attempt:(\d{1,9}),\}/;
const WORKER = /^failed to "\w{1,30}" for "([^"_\\]{1,253})_([^"_\\]{1,253})\(([^"()\\]{1,253})\)" with /;
const KLOG_POD = /^([^/\s]{1,253})\/([^/\s]{1,253})$/;

/** From fields that the writer itself fills: its message, its fields, and the name that the runtime refused. */
function podIn({ message, error = "", fields }: LogEnvelope, answer: string): NamedPod | undefined {
  const [, name, uid, namespace, attempt] = METADATA.exec(message) ?? [];
  if (name !== undefined && namespace !== undefined && uid !== undefined)
    return { namespace, name, uid, attempt: Number(attempt) };
  const reserved = parseSandboxName(HOLDER.exec(answer)?.[1] ?? "");
  if (reserved !== undefined) return reserved;
  const [, workerPod, workerNamespace, workerUid] = WORKER.exec(error) ?? [];
  if (workerPod !== undefined && workerNamespace !== undefined && workerUid !== undefined)
    return { namespace: workerNamespace, name: workerPod, uid: workerUid };
  const [, podNamespace, podName] = KLOG_POD.exec(fields.get("pod") ?? "") ?? [];
  if (podNamespace === undefined || podName === undefined) return undefined;
  const podUid = fields.get("podUID");
  return { namespace: podNamespace, name: podName, uid: podUid };
}
