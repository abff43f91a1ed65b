import type { NamedPod, SandboxId } from "../node/types/ids.ts";

/**
 * What is in flight, retried or failing and not yet proven stuck. Users script against these codes.
 *
 * - `creation-in-flight`: RunPodSandbox runs, and no error about it was reported yet.
 * - `creation-overdue`: RunPodSandbox exceeds kubelet's timeout, whether or not a report of that was read.
 * - `creation-stalled`: RunPodSandbox has run for a minute, like others, and no creation has succeeded meanwhile.
 * - `creation-retrying`: kubelet gave up at least one attempt (timeout, reserved name), and the next one runs.
 * - `creation-failing`: the last attempt failed, and kubelet waits before the next one.
 * - `creation-waiting`: kubelet waits for a volume before it creates the sandbox.
 * - `creation-held`: the pod waits for a volume that a node has which is gone or not Ready.
 * - `removal-in-flight`: StopPodSandbox runs, and no error about it was reported yet.
 * - `removal-overdue`: StopPodSandbox exceeds kubelet's timeout, whether or not a report of that was read.
 * - `removal-failing`: kubelet's attempts to stop the sandbox fail.
 * - `runtime-status-hanging`: the runtime answers lists and not Status; kubelet sets the node NotReady.
 */
export const PENDING_REASONS = [
  "creation-in-flight",
  "creation-overdue",
  "creation-stalled",
  "creation-retrying",
  "creation-failing",
  "creation-waiting",
  "creation-held",
  "removal-in-flight",
  "removal-overdue",
  "removal-failing",
  "runtime-status-hanging",
] as const;
export type PendingReason = (typeof PENDING_REASONS)[number];

export interface Pending {
  readonly reason: PendingReason;
  /** Missing if the runtime as a whole is pending. */
  readonly pod?: NamedPod;
  readonly sandboxId?: SandboxId;
  /** From the monotonic clock if the age of a process is known. */
  readonly since: Date;
  readonly waitsFor?: WaitsFor;
  /** Reports of kubelet, the runtime or the API server about this attempt, newest first; limited. */
  readonly reported: readonly Reported[];
  /** When it becomes a finding without a change; missing if only more evidence makes it one. */
  readonly becomesFindingAt?: Date;
}

export type WaitsFor =
  | { readonly kind: "plugin"; readonly pid: number; readonly command: string; readonly cniCommand: string }
  | { readonly kind: "daemon"; readonly socket: string; readonly pid?: number; readonly command?: string }
  | { readonly kind: "lock"; readonly holder: { readonly pid: number; readonly command: string } }
  | { readonly kind: "volume"; readonly message: string }
  | { readonly kind: "runtime" };

/** The error of one call, as reported by its caller or its server. */
export interface Reported {
  readonly by: "kubelet" | "runtime" | "kubernetes";
  readonly code: ReportedCode;
  readonly operation: "create" | "remove" | "status";
  readonly at?: Date;
  /** The count, if it is known. */
  readonly count: number;
  readonly message: string;
}

/**
 * - `deadline-exceeded`: the caller timed out. - `canceled`: the caller disconnected.
 * - `name-reserved`: an earlier attempt holds the name. - `daemon-unreachable`: a plugin could not reach its daemon.
 * - `plugin-killed`: the runtime killed a plugin that took too long. - `plugin-failed`: a plugin returned an error. -
 *   `volume`: the pod waits for a volume. - `other`.
 */
export const REPORTED_CODES = [
  "deadline-exceeded",
  "canceled",
  "name-reserved",
  "daemon-unreachable",
  "plugin-killed",
  "plugin-failed",
  "volume",
  "other",
] as const;
export type ReportedCode = (typeof REPORTED_CODES)[number];

/** Waiting for a volume is a storage problem, and an attempt without an error is normal. */
const NOT_FAILING: ReadonlySet<PendingReason> = new Set([
  "creation-waiting",
  "creation-in-flight",
  "removal-in-flight",
]);

/** Kubelet timed out, nothing succeeds, or a failure was reported: a node with such a pending entry is not healthy. */
export function isFailing({ reason }: Pick<Pending, "reason">): boolean {
  return !NOT_FAILING.has(reason);
}

/** Whether a pod waits for the creation of its sandbox. */
export function isCreation({ reason }: Pick<Pending, "reason">): boolean {
  return reason.startsWith("creation-");
}

/** Can this node create a pod? */
export interface PodCreation {
  readonly able: "yes" | "no" | "unknown";
  readonly lastSuccess?: { readonly at: Date; readonly pod: NamedPod };
  readonly lastFailure?: {
    readonly at?: Date;
    readonly code: ReportedCode;
    readonly pod?: NamedPod;
    readonly message: string;
  };
  /** Pods whose sandbox fails to be created, or whose creation is stalled or overdue. */
  readonly blockedPods: readonly NamedPod[];
}
