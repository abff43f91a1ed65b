import type { NamedPod, PodRef, SandboxId } from "../node/types/ids.ts";
import type { Step } from "./step.ts";

/** Why something is kept, skipped, refused or failed: a stable code, which users script against, and a sentence. Made where it is decided. */
export interface Reason<Code extends string = string> {
  readonly code: Code;
  readonly text: string;
}

export function reason<const Code extends string>(code: Code, text: string): Reason<Code> {
  return { code, text };
}

/** One fault of the node, with class and evidence. */
export interface Finding {
  /** `<class>/<subject>`: the same cause on the same subject has the same id in every scan. */
  readonly id: string;
  readonly class: string;
  readonly severity: Severity;
  readonly subject: Subject;
  readonly summary: string;
  readonly evidence: readonly Evidence[];
  /** What is blocked, in words: a pod, a name, an address range. */
  readonly blocks: readonly string[];
  /** All pods that cannot start; `blocks` may name only the first ones. */
  readonly blockedPods?: readonly NamedPod[];
  /** All deleted pods whose deletion waits. */
  readonly terminatingPods?: readonly NamedPod[];
  readonly treatment: Treatment;
  /** The steps that remove the obstacle. The plan decides about stopping and removing the sandbox itself. */
  readonly cure: readonly Step[];
  /** Steps for the affected pods, after the heal. */
  readonly followUps?: readonly Step[];
  /** Sockets of CSI drivers without a server: the subject's pod is the drivers' node plugin. */
  readonly missingSockets?: readonly string[];
  /** What happens without further steps after the heal, and how long it takes. */
  readonly aftermath?: { readonly text: string; readonly withinMs: number };
  /** Why it cannot be healed here, not even with consent. */
  readonly untreatable?: string;
}

/** The result of a class; diagnose() adds the class's name and treatment to make it a finding. */
export interface Detected
  extends Pick<
      Finding,
      "severity" | "subject" | "summary" | "evidence" | "blockedPods" | "terminatingPods" | "untreatable"
    >,
    Partial<Pick<Finding, "blocks" | "cure">> {
  /** Other stuck or leaked sandboxes with the same cause: they get no findings of their own. */
  readonly explains?: readonly SandboxId[];
  /** The steps for what was found on this node, in a class whose own steps have branches. */
  readonly steps?: readonly string[];
  /** Steps that need consent, in a class that is otherwise automatic. */
  readonly attended?: readonly string[];
}

export type Severity = "critical" | "warning" | "info";

export type Subject =
  | {
      readonly type: "sandbox";
      readonly sandboxId: SandboxId;
      readonly name?: string;
      readonly pod?: PodRef;
      readonly path?: string;
      readonly pid?: number;
    }
  | { readonly type: "file"; readonly path: string; readonly sandboxId?: SandboxId; readonly pod?: PodRef }
  | {
      readonly type: "process";
      readonly pid: number;
      readonly sandboxId?: SandboxId;
      readonly pod?: PodRef;
      readonly name?: string;
    }
  | { readonly type: "netns"; readonly path: string }
  | { readonly type: "lease" | "volume-attachment"; readonly name: string }
  | { readonly type: "record"; readonly name: string; readonly sandboxId?: SandboxId; readonly pod?: PodRef }
  | { readonly type: "container"; readonly name: string; readonly sandboxId?: SandboxId; readonly pod?: PodRef }
  | { readonly type: "node"; readonly name?: string; readonly path?: string };

/** The sandbox that a subject is, or belongs to. */
export function sandboxIdOf(subject: Subject): SandboxId | undefined {
  return "sandboxId" in subject ? subject.sandboxId : undefined;
}

export function podOf(subject: Subject): PodRef | undefined {
  return "pod" in subject ? subject.pod : undefined;
}

/** Two findings of one class with the same key are the same finding. */
export function subjectKey(subject: Subject): string {
  switch (subject.type) {
    case "sandbox":
      return subject.sandboxId;
    case "file":
    case "netns":
      return subject.path;
    case "process":
      return `pid-${subject.pid}`;
    case "lease":
    case "volume-attachment":
    case "record":
    case "container":
      return subject.name;
    case "node":
      return subject.path ?? subject.name ?? "node";
  }
}

export interface Evidence {
  /** The source of the fact: cri, containerd, cni, netns, processes, logs, kubernetes, boot. */
  readonly source: string;
  readonly fact: string;
}

interface Treatment {
  readonly automatic: boolean;
  readonly reversible: boolean;
  readonly steps: readonly string[];
}

/** Why a NotReady sandbox is kept. Users script against these codes. */
export type KeptCode =
  | "opted-out"
  | "alive"
  | "not-proven-dead"
  | "network-teardown-in-flight"
  | "network-setup-in-flight"
  | "creation-in-flight"
  | "successor-running"
  | "static-pod"
  | "containers-finished"
  | "container-ends-unread"
  | "pod-finished"
  | "pod-known"
  | "left-to-kubelet"
  | "not-stuck"
  | "class-not-selected";

/** A NotReady sandbox that is kept on purpose. */
export interface Kept {
  readonly sandboxId: SandboxId;
  readonly pod: PodRef;
  readonly reason: Reason<KeptCode>;
}

/** Pods whose name kubelet or the API reported. */
export function namedPods(
  pods: readonly { readonly namespace: string | undefined; readonly name: string | undefined }[],
): readonly NamedPod[] {
  return pods.flatMap(({ namespace, name }) =>
    namespace === undefined || name === undefined ? [] : [{ namespace, name }],
  );
}

/**
 * - `ghosts`: there are findings. - `degraded`: no finding yet, but kubelet or Kubernetes reports ongoing failures.
 * - `unknown`: a source that could show a ghost was not read. - `healthy`: everything was read, and nothing fails.
 */
export const VERDICTS = ["healthy", "degraded", "ghosts", "unknown"] as const;
export type Verdict = (typeof VERDICTS)[number];
