import type { ActionReason, LeftAloneReason } from "./plan-reason.ts";
import type { ClockDoubt } from "./policy.ts";

/**
 * How far unghost may go with one sandbox, from the least to the most invasive rung. It stops at the first rung that
 * heals.
 */
export type Rung =
  /** Keep it. */
  | 0
  /** Remove the obstacle and let kubelet finish. */
  | 1
  /** StopPodSandbox: releases network and address, keeps record, name and logs. */
  | 2
  /** RemovePodSandbox: releases the name, and removes the containers. */
  | 3;

/** The inputs of the decision; each field is a proof or the lack of one. */
export interface LadderCase {
  readonly provenDead: boolean;
  readonly optedOut: boolean;
  /** Kubernetes keeps it on purpose: a finished pod, or the old sandbox of a pod that runs again. */
  readonly retained: boolean;
  /** A file or process blocks its removal. */
  readonly obstacle: boolean;
  readonly kubeletAlive: boolean;
  readonly outlastedMinAge: boolean;
  /** Whether Kubernetes has the pod; `unasked` without an API server and kubelet directories. */
  readonly pod: "known" | "gone" | "unasked";
  /** Static and host-network pods of the control plane: never touched without proof from Kubernetes. */
  readonly controlPlane: boolean;
  readonly neverCreated: boolean;
  /** An observed error names it as the holder of a needed name. */
  readonly holdsBlockedName: boolean;
  /** A clock step makes kubelet request its attempt number again. */
  readonly attemptReused: boolean;
  /** Why the clock may still be wrong; then it is unknown which attempt blocks. */
  readonly clockDoubt: ClockDoubt | undefined;
  readonly hasContainers: boolean;
  /** Created before the current start of the runtime or the machine, and its containers were lost with it. */
  readonly diedWithNode: boolean;
  /** `--all-dead`: remove every dead sandbox of the node. */
  readonly allDead: boolean;
}

export type Decision =
  | { readonly rung: 0; readonly reason: LeftAloneReason }
  | { readonly rung: Exclude<Rung, 0>; readonly reason: ActionReason };

export function decideRung(facts: LadderCase): Decision {
  const objection = reasonToLeave(facts);
  if (objection !== undefined) return { rung: 0, reason: objection };
  if (facts.allDead) return { rung: 3, reason: { code: "all-dead-requested" } };
  if (facts.attemptReused && facts.clockDoubt !== undefined) {
    return { rung: 0, reason: { code: "clock-in-doubt", doubt: facts.clockDoubt } };
  }
  if (facts.retained && !facts.holdsBlockedName) {
    return facts.obstacle
      ? { rung: 2, reason: { code: "kept-with-network-held" } }
      : { rung: 0, reason: { code: "kept-on-purpose" } };
  }
  if (facts.kubeletAlive && !facts.outlastedMinAge && !facts.obstacle) {
    return { rung: 0, reason: { code: "kubelet-recovering" } };
  }
  const removal = reasonToRemove(facts);
  if (removal !== undefined) return { rung: 3, reason: removal };
  if (facts.obstacle && facts.kubeletAlive) return { rung: 1, reason: { code: "kubelet-finishes" } };
  return { rung: 2, reason: { code: "network-releasable" } };
}

/** Refusals that no option overrides. */
function reasonToLeave(facts: LadderCase): LeftAloneReason | undefined {
  if (facts.optedOut) return { code: "opted-out" };
  if (facts.controlPlane && facts.pod === "unasked") return { code: "control-plane-unproven" };
  return facts.provenDead ? undefined : { code: "not-proven-dead" };
}

function reasonToRemove(facts: LadderCase): ActionReason | undefined {
  if (facts.pod === "gone") return { code: "pod-not-on-node" };
  if (facts.neverCreated) return { code: "never-created" };
  if (facts.holdsBlockedName) return { code: "holds-blocked-name" };
  if (facts.attemptReused) return { code: "attempt-reused" };
  if (!facts.hasContainers) return { code: "no-container" };
  if (facts.pod === "unasked" && !facts.kubeletAlive && facts.diedWithNode) return { code: "died-with-node" };
  return undefined;
}
