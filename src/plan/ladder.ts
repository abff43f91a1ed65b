import { type Reason, reason } from "../evidence/finding.ts";

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
  /** A kubelet is about to start, or has just started: it stops and removes what nothing prevents it from. */
  readonly kubeletFollows: boolean;
  readonly outlastedMinAge: boolean;
  /** Whether Kubernetes has the pod; `unasked` without an API server and kubelet directories. */
  readonly pod: "known" | "gone" | "unasked";
  /** Why it is `unasked`. */
  readonly whyUnasked: string;
  /** Static and host-network pods of the control plane: never touched without proof from Kubernetes. */
  readonly controlPlane: boolean;
  readonly neverCreated: boolean;
  /** An observed error names it as the holder of a needed name. */
  readonly holdsBlockedName: boolean;
  /** A clock step makes kubelet request its attempt number again. */
  readonly attemptReused: boolean;
  /** Why the clock may still be wrong; then it is unknown which attempt blocks. */
  readonly clockDoubt: Reason<"clock-in-doubt"> | undefined;
  readonly hasContainers: boolean;
  /** Created before the current start of the runtime or the machine, and its containers were lost with it. */
  readonly diedWithNode: boolean;
  /** `--all-dead`: remove every dead sandbox of the node. */
  readonly allDead: boolean;
}

/** Users script against these codes. */
export type KeepCode =
  | "opted-out"
  | "not-proven-dead"
  | "control-plane-unproven"
  | "clock-in-doubt"
  | "kept-on-purpose"
  | "kubelet-recovering"
  | "kubelet-follows";

export type TreatCode =
  | "all-dead-requested"
  | "kept-with-network-held"
  | "kubelet-finishes"
  | "network-releasable"
  | "pod-not-on-node"
  | "never-created"
  | "holds-blocked-name"
  | "attempt-reused"
  | "no-container"
  | "died-with-node";

export type Decision =
  | { readonly rung: 0; readonly reason: Reason<KeepCode> }
  | { readonly rung: Exclude<Rung, 0>; readonly reason: Reason<TreatCode> };

export const OPTED_OUT = reason("opted-out", "it is opted out by unghost.dev/ignore");

export function decideRung(facts: LadderCase): Decision {
  const objection = reasonToLeave(facts);
  if (objection !== undefined) return { rung: 0, reason: objection };
  if (facts.allDead)
    return { rung: 3, reason: reason("all-dead-requested", "--all-dead asks for everything proven dead") };
  if (facts.attemptReused && facts.clockDoubt !== undefined) {
    return { rung: 0, reason: facts.clockDoubt };
  }
  if (facts.retained && !facts.holdsBlockedName) {
    return facts.obstacle
      ? {
          rung: 2,
          reason: reason(
            "kept-with-network-held",
            "Kubernetes keeps it on purpose, but its network cannot be released",
          ),
        }
      : { rung: 0, reason: reason("kept-on-purpose", "Kubernetes keeps it on purpose") };
  }
  if (facts.kubeletAlive && !facts.outlastedMinAge && !facts.obstacle) {
    return { rung: 0, reason: reason("kubelet-recovering", "kubelet is alive and may be recovering it right now") };
  }
  const removal = reasonToRemove(facts);
  if (facts.kubeletFollows && !facts.obstacle && (removal === undefined || KUBELET_REMOVES.has(removal.code))) {
    return { rung: 0, reason: reason("kubelet-follows", "it needs no repair: kubelet, which starts next, removes it") };
  }
  if (removal !== undefined) return { rung: 3, reason: removal };
  if (facts.obstacle && facts.kubeletAlive)
    return { rung: 1, reason: reason("kubelet-finishes", "kubelet is alive and finishes once the obstacle is gone") };
  return {
    rung: 2,
    reason: reason("network-releasable", "its network can be released; its record and logs may still be wanted"),
  };
}

/** What kubelet removes on its own, in no order and under any attempt. */
const KUBELET_REMOVES: ReadonlySet<TreatCode> = new Set(["pod-not-on-node", "no-container", "died-with-node"]);

/** Refusals that no option overrides. */
function reasonToLeave(facts: LadderCase): Reason<KeepCode> | undefined {
  if (facts.optedOut) return OPTED_OUT;
  if (facts.controlPlane && facts.pod === "unasked")
    return reason(
      "control-plane-unproven",
      `a control-plane pod is touched only when Kubernetes or kubelet can be asked about it: ${facts.whyUnasked}`,
    );
  return facts.provenDead ? undefined : reason("not-proven-dead", "it is not proven dead");
}

function reasonToRemove(facts: LadderCase): Reason<TreatCode> | undefined {
  if (facts.pod === "gone") return reason("pod-not-on-node", "its pod is gone from this node");
  if (facts.neverCreated) return reason("never-created", "it was never completely created");
  if (facts.holdsBlockedName)
    return reason("holds-blocked-name", "an observed error names it as the holder of a blocked name");
  if (facts.attemptReused)
    return reason("attempt-reused", "after a clock step kubelet asks for its attempt number again");
  if (!facts.hasContainers) return reason("no-container", "it holds no container");
  if (facts.pod === "unasked" && !facts.kubeletAlive && facts.diedWithNode)
    return reason("died-with-node", `it died with the node; no kubelet runs, and ${facts.whyUnasked}`);
  return undefined;
}
