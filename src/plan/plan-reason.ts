import { type ClockDoubt, clockDoubtInWords } from "./policy.ts";

/** Why a finding is skipped, or why unghost may go as far as it does. Users script against the codes. */
export type PlanReason = LeftAloneReason | ActionReason;

export type LeftAloneReason =
  | { readonly code: "paused" }
  | { readonly code: "opted-out" }
  | { readonly code: "untreatable"; readonly why: string }
  /** `allow`: the class that may be healed with consent; missing if only manual steps help. */
  | { readonly code: "needs-consent"; readonly steps: readonly string[]; readonly allow?: string }
  | { readonly code: "nothing-to-end" }
  | { readonly code: "over-cap"; readonly cap: number }
  | { readonly code: "own-pod" }
  | { readonly code: "not-proven-dead" }
  | { readonly code: "control-plane-unproven" }
  | { readonly code: "clock-in-doubt"; readonly doubt: ClockDoubt }
  | { readonly code: "kept-on-purpose" }
  | { readonly code: "kubelet-recovering" };

export type ActionReason =
  | { readonly code: "cure"; readonly summary: string }
  | { readonly code: "all-dead-requested" }
  | { readonly code: "kept-with-network-held" }
  | { readonly code: "kubelet-finishes" }
  | { readonly code: "network-releasable" }
  | { readonly code: "pod-not-on-node" }
  | { readonly code: "never-created" }
  | { readonly code: "holds-blocked-name" }
  | { readonly code: "attempt-reused" }
  | { readonly code: "no-container" }
  | { readonly code: "died-with-node" };

export function planReasonInWords(reason: PlanReason): string {
  switch (reason.code) {
    case "paused":
      return "the node is paused by unghost.dev/paused";
    case "opted-out":
      return "it is opted out by unghost.dev/ignore";
    case "untreatable":
      return reason.why;
    case "needs-consent":
      return reason.allow === undefined
        ? `manual: ${reason.steps.join(" ")}`
        : `manual (to allow it: unghost heal --only ${reason.allow}, or agent.classes.${reason.allow}: heal): ${reason.steps.join(" ")}`;
    case "nothing-to-end":
      return "nothing was found that could be ended: restart the runtime manually to clear it";
    case "over-cap":
      return `over the cap of ${reason.cap} for one run; heal again`;
    case "own-pod":
      return "unghost itself runs in this pod";
    case "not-proven-dead":
      return "it is not proven dead";
    case "control-plane-unproven":
      return "a control-plane pod is touched only when Kubernetes or kubelet can be asked about it";
    case "clock-in-doubt":
      return clockDoubtInWords(reason.doubt);
    case "kept-on-purpose":
      return "Kubernetes keeps it on purpose";
    case "kubelet-recovering":
      return "kubelet is alive and may be recovering it right now";
    case "cure":
      return reason.summary;
    case "all-dead-requested":
      return "--all-dead asks for everything proven dead";
    case "kept-with-network-held":
      return "Kubernetes keeps it on purpose, but its network cannot be released";
    case "kubelet-finishes":
      return "kubelet is alive and finishes once the obstacle is gone";
    case "network-releasable":
      return "its network can be released; its record and logs may still be wanted";
    case "pod-not-on-node":
      return "its pod is gone from this node";
    case "never-created":
      return "it was never completely created";
    case "holds-blocked-name":
      return "an observed error names it as the holder of a blocked name";
    case "attempt-reused":
      return "after a clock step kubelet asks for its attempt number again";
    case "no-container":
      return "it holds no container";
    case "died-with-node":
      return "it died with the node, and neither API server nor kubelet can be asked";
  }
}
