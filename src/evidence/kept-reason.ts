import type { Liveness } from "../liveness/liveness.ts";
import { livenessInWords } from "../liveness/words.ts";

/** Why a NotReady sandbox is kept. Users script against the codes. */
export type KeptReason =
  | { readonly code: "opted-out" }
  | { readonly code: "alive"; readonly liveness: Liveness }
  | { readonly code: "not-proven-dead"; readonly liveness: Liveness }
  | { readonly code: "network-teardown-in-flight" }
  | { readonly code: "network-setup-in-flight" }
  | { readonly code: "creation-in-flight" }
  | { readonly code: "successor-running"; readonly attempt: number }
  | { readonly code: "static-pod" }
  | { readonly code: "containers-finished" }
  | { readonly code: "container-ends-unread" }
  | { readonly code: "pod-finished"; readonly phase: string; readonly hasContainers: boolean }
  | { readonly code: "pod-known" }
  | { readonly code: "left-to-kubelet" }
  | { readonly code: "not-stuck" }
  | { readonly code: "class-not-selected"; readonly class: string };

export function keptInWords(reason: KeptReason): string {
  switch (reason.code) {
    case "opted-out":
      return "opted out by unghost.dev/ignore";
    case "alive":
      return `not dead: ${livenessInWords(reason.liveness)}`;
    case "not-proven-dead":
      return `not proven dead: ${livenessInWords(reason.liveness)}`;
    case "network-teardown-in-flight":
      return "its network is being taken down right now";
    case "network-setup-in-flight":
      return "its network is still being set up";
    case "creation-in-flight":
      return "its creation is under way, and not yet for too long";
    case "successor-running":
      return `the pod runs again under attempt ${reason.attempt}; this one holds the containers behind kubectl logs --previous`;
    case "static-pod":
      return "a static pod: kubelet creates it again from its manifest";
    case "containers-finished":
      return "a finished pod: its containers ended in an orderly way, and kubectl logs still reads them";
    case "container-ends-unread":
      return "how its containers ended could not be read: it may be a finished pod";
    case "pod-finished": {
      const logs = reason.hasContainers ? "kubectl logs still reads its containers" : "no pod waits for its name";
      return `a finished pod: Kubernetes calls it ${reason.phase}, and ${logs}`;
    }
    case "pod-known":
      return "Kubernetes still knows the pod, and its network is released; kubectl logs still reads its containers";
    case "left-to-kubelet":
      return "its pod is unknown (no API server, no kubelet directory), and its network is released; the rest is left to kubelet, which runs";
    case "not-stuck":
      return "dead, but nothing shows that it is stuck: kubelet removes it when it gets to it";
    case "class-not-selected":
      return `${reason.class} was not asked for`;
  }
}
