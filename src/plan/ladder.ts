/** Least harm: how far unghost may go with one sandbox. The first rung that heals is the last one taken. */
export type Rung =
  /** Leave it. */
  | 0
  /** Remove the obstacle and let kubelet finish. */
  | 1
  /** StopPodSandbox: frees network and address, keeps record, name and logs. */
  | 2
  /** RemovePodSandbox: releases the name, and takes the containers with it. */
  | 3;

/** All that the decision rests on; each field is a proof or the lack of one. */
export interface LadderCase {
  readonly provenDead: boolean;
  readonly optedOut: boolean;
  /** Kubernetes keeps it on purpose: a finished pod, or the old sandbox of a pod that runs again. */
  readonly retained: boolean;
  /** A file or process stands in the way of its removal. */
  readonly obstacle: boolean;
  readonly kubeletAlive: boolean;
  readonly outlastedMinAge: boolean;
  /** What Kubernetes says of the pod; `unasked` when there was nobody to ask. */
  readonly pod: "known" | "gone" | "unasked";
  /** Static and host-network pods of the control plane: never touched on our own say-so. */
  readonly controlPlane: boolean;
  readonly neverCreated: boolean;
  /** An observed error names it as the holder of a name that somebody needs. */
  readonly holdsBlockedName: boolean;
  /** A clock step makes kubelet ask for its attempt number again. */
  readonly attemptReused: boolean;
  /** Why the clock may be wrong still; then nobody can tell which attempt is in the way. */
  readonly clockDoubt: string | undefined;
  readonly hasContainers: boolean;
  /** Made before the runtime's or the machine's current start, its containers lost with it. */
  readonly diedWithNode: boolean;
  /** `--all-dead`: the person wants the node swept. */
  readonly allDead: boolean;
}

export interface Decision {
  readonly rung: Rung;
  readonly because: string;
}

export const OPTED_OUT = "it is opted out by unghost.dev/ignore";

export function decideRung(facts: LadderCase): Decision {
  if (!facts.provenDead) return { rung: 0, because: "it is not proven dead" };
  if (facts.optedOut) return { rung: 0, because: OPTED_OUT };
  if (facts.controlPlane && facts.pod === "unasked") {
    return { rung: 0, because: "a control-plane pod is touched only when Kubernetes or kubelet can be asked about it" };
  }
  if (facts.allDead) return { rung: 3, because: "--all-dead asks for everything proven dead" };
  if (facts.attemptReused && facts.clockDoubt !== undefined) return { rung: 0, because: facts.clockDoubt };
  if (facts.retained && !facts.holdsBlockedName) {
    return facts.obstacle
      ? { rung: 2, because: "Kubernetes keeps it on purpose, but its network cannot be released" }
      : { rung: 0, because: "Kubernetes keeps it on purpose" };
  }
  if (facts.kubeletAlive && !facts.outlastedMinAge && !facts.obstacle) {
    return { rung: 0, because: "kubelet is alive and may be recovering it right now" };
  }
  const removal = reasonToRemove(facts);
  if (removal !== undefined) return { rung: 3, because: removal };
  if (facts.obstacle && facts.kubeletAlive) {
    return { rung: 1, because: "kubelet is alive and finishes by itself once the obstacle is gone" };
  }
  return { rung: 2, because: "its network can be released; its record and logs may still be wanted" };
}

function reasonToRemove(facts: LadderCase): string | undefined {
  if (facts.pod === "gone") return "its pod is gone from this node";
  if (facts.neverCreated) return "it was never completely created";
  if (facts.holdsBlockedName) return "an observed error names it as the holder of a blocked name";
  if (facts.attemptReused) return "after a clock step kubelet asks for its attempt number again";
  if (!facts.hasContainers) return "it holds no container";
  if (facts.pod === "unasked" && !facts.kubeletAlive && facts.diedWithNode) {
    return "it died with the node, and there is neither API nor kubelet to ask";
  }
  return undefined;
}
