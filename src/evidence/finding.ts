import type { PodRef, SandboxId } from "../snapshot/ids.ts";
import type { BlockedPod } from "./blocked-pods.ts";
import type { KeptReason } from "./kept-reason.ts";
import type { Step } from "./step.ts";

/** One thing wrong on the node, named and proven. */
export interface Finding {
  /** `<class>/<subject>`: the same cause on the same subject has the same id in every scan. */
  readonly id: string;
  readonly class: string;
  readonly severity: Severity;
  readonly subject: Subject;
  readonly summary: string;
  readonly evidence: readonly Evidence[];
  /** What cannot work because of this, in words: a pod, a name, an address range. */
  readonly blocks: readonly string[];
  /** Every pod among them. */
  readonly blockedPods?: readonly BlockedPod[];
  readonly treatment: Treatment;
  /** What removes the obstacle. Stopping and removing the sandbox itself is the plan's to decide. */
  readonly cure: readonly Step[];
  /** What helps those who suffered from it, once it is healed. */
  readonly followUps?: readonly Step[];
  /** Sockets of CSI drivers that have no server because of it: its pod is the drivers' node plugin. */
  readonly missingSockets?: readonly string[];
  /** What happens on its own once it is healed, and how long that takes. */
  readonly aftermath?: string;
  /** Why it cannot be healed here, not even by an attended run. */
  readonly untreatable?: string;
}

/** What a class saw; diagnose() adds the class's own name and treatment to make it a finding. */
export interface Detected {
  readonly severity: Severity;
  readonly subject: Subject;
  readonly summary: string;
  readonly evidence: readonly Evidence[];
  readonly blocks: readonly string[];
  /** Every pod among them; `blocks` may name the first few only. */
  readonly blockedPods?: readonly BlockedPod[];
  readonly cure: readonly Step[];
  /** More sandboxes that are stuck, or gone with something left behind, because of this: no findings of their own. */
  readonly explains?: readonly SandboxId[];
  readonly untreatable?: string;
  /** What needs consent first, in a class that is otherwise automatic. */
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
  | { readonly type: "lease"; readonly name: string }
  | { readonly type: "volume-attachment"; readonly name: string }
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

/** What makes two findings of one class the same finding. */
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

/** A sandbox that is not ready and is rightly left as it is. */
export interface Kept {
  readonly sandboxId: SandboxId;
  readonly pod: PodRef;
  readonly reason: KeptReason;
}

export type PodName = Pick<PodRef, "namespace" | "name">;

/** Those that kubelet or the API named. */
export function namedPods(
  pods: readonly { readonly namespace: string | undefined; readonly name: string | undefined }[],
): readonly PodName[] {
  return pods.flatMap(({ namespace, name }) =>
    namespace === undefined || name === undefined ? [] : [{ namespace, name }],
  );
}

/**
 * - `ghosts`: there are findings. - `degraded`: no finding yet, but kubelet or Kubernetes reports failures that go on.
 * - `unknown`: something that could have shown a ghost was not read. - `healthy`: everything was read, and nothing fails.
 */
export const VERDICTS = ["healthy", "degraded", "ghosts", "unknown"] as const;
export type Verdict = (typeof VERDICTS)[number];
