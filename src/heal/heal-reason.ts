import { classById } from "../classes/index.ts";
import type { Liveness } from "../liveness/liveness.ts";
import type { Reference } from "../liveness/reference.ts";
import { livenessInWords, referenceInWords } from "../liveness/words.ts";
import { FOREIGN_PID_NAMESPACE, WANTS_HOST_PID } from "../snapshot/pid-namespace.ts";
import type { Refusal } from "./outcome.ts";
import type { NodeReady } from "./steps/processes.ts";

/** Why a step was not executed, or did not succeed. Users script against the codes. */
export type HealReason =
  // The proof is no longer valid.
  | { readonly code: "not-dead"; readonly liveness: Liveness }
  | { readonly code: "still-referenced"; readonly by: Reference }
  | { readonly code: "sandbox-ready" }
  | { readonly code: "address-in-use"; readonly address: string }
  | { readonly code: "lease-has-owner"; readonly path: string }
  | { readonly code: "names-no-sandbox"; readonly path: string }
  | { readonly code: "file-not-broken"; readonly path: string }
  | { readonly code: "not-a-plain-file"; readonly path: string }
  | { readonly code: "file-too-large"; readonly path: string; readonly bytes: number }
  | { readonly code: "processes-unread" }
  | { readonly code: typeof FOREIGN_PID_NAMESPACE; readonly why: string }
  | { readonly code: "shim-has-children"; readonly count: number }
  | { readonly code: "not-a-namespace"; readonly path: string }
  | { readonly code: "namespace-changed"; readonly path: string }
  | { readonly code: "namespace-users-unread" }
  | { readonly code: "namespace-in-use" }
  | { readonly code: "namespace-referenced" }
  | { readonly code: "pod-elsewhere"; readonly node: string }
  | { readonly code: "pod-opted-out" }
  | { readonly code: "namespace-opted-out" }
  | { readonly code: "pod-without-controller" }
  | { readonly code: "pod-recreated" }
  | { readonly code: "api-missing" }
  | { readonly code: "api-unread"; readonly message: string }
  | { readonly code: "socket-not-served"; readonly path: string; readonly seconds: number }
  | { readonly code: "daemon-not-proven"; readonly socket: string; readonly pid: number }
  | { readonly code: "container-not-running"; readonly containerId: string }
  | { readonly code: "no-kubelet" }
  // A resource that unghost itself needs is unavailable.
  | { readonly code: "file-refused" | "journal-refused" | "logs-not-saved" | "lock-refused"; readonly refusal: Refusal }
  | { readonly code: "marker-not-written"; readonly path: string; readonly error: string }
  // Not started.
  | { readonly code: "interrupted" }
  | { readonly code: "shared-cause"; readonly class: string; readonly times: number; readonly text: string }
  | { readonly code: "removals-unanswered"; readonly times: number }
  | { readonly code: "no-removal-answered"; readonly count: number }
  // Tried, without success.
  | { readonly code: "runtime-error"; readonly message: string }
  | { readonly code: "api-error"; readonly message: string }
  | { readonly code: "process-unkillable"; readonly pid: number }
  | { readonly code: "status-unanswered"; readonly why: string | undefined }
  | { readonly code: "daemon-still-silent"; readonly socket: string; readonly seconds: number }
  | { readonly code: "address-not-released"; readonly address: string; readonly why: string }
  | { readonly code: "del-undelivered"; readonly network: string; readonly failure: string }
  | {
      readonly code: "del-incomplete";
      readonly network: string;
      readonly plugins: readonly string[];
      readonly failure: string;
      /** Interfaces of the node in the cached result that still exist. */
      readonly interfaces: readonly string[];
    }
  | { readonly code: "unmount-failed"; readonly path: string; readonly error: string }
  | { readonly code: "unlink-failed"; readonly path: string; readonly error: string }
  | { readonly code: "sandbox-still-there"; readonly left: "listed" | "recorded" }
  | { readonly code: "pod-still-there" };

export type HealCode = HealReason["code"] | NodeReady["code"];

export function healReasonInWords(reason: HealReason): string {
  switch (reason.code) {
    case "not-dead":
      return `not dead any more: ${livenessInWords(reason.liveness)}`;
    case "still-referenced":
      return `not left behind: ${referenceInWords(reason.by)}`;
    case "sandbox-ready":
      return "the sandbox became Ready";
    case "address-in-use":
      return `${reason.address} is the address of a pod that runs`;
    case "lease-has-owner":
      return `${reason.path} names an owner by now`;
    case "names-no-sandbox":
      return `${reason.path} names no sandbox`;
    case "file-not-broken":
      return `${reason.path} is not broken any more`;
    case "not-a-plain-file":
      return `${reason.path} is not a plain file. Inspect it, move it away, then heal again.`;
    case "file-too-large":
      return `${reason.path} has ${reason.bytes} bytes, and the runtime would read them all. Inspect it, move it away, then heal again.`;
    case "processes-unread":
      return "the process table cannot be read";
    case FOREIGN_PID_NAMESPACE:
      return `no process is signalled: ${reason.why}; ${WANTS_HOST_PID}`;
    case "shim-has-children":
      return `the shim has ${reason.count} children: more than pause lives there`;
    case "not-a-namespace":
      return `${reason.path} is not a namespace file`;
    case "namespace-changed":
      return `${reason.path} is another namespace by now`;
    case "namespace-users-unread":
      return "its users are unknown: not every process or record could be read";
    case "namespace-in-use":
      return "a process lives in it";
    case "namespace-referenced":
      return "a sandbox record refers to it";
    case "pod-elsewhere":
      return `it lives on ${reason.node || "no node"}, not here`;
    case "pod-opted-out":
      return "it is opted out by unghost.dev/ignore";
    case "namespace-opted-out":
      return "its namespace is opted out by unghost.dev/ignore";
    case "pod-without-controller":
      return "it has no controller that would recreate it";
    case "pod-recreated":
      return "it was recreated during the check";
    case "api-missing":
      return "there is no Kubernetes API to ask";
    case "api-unread":
      return `its proof is incomplete: ${reason.message}`;
    case "socket-not-served":
      return `no process listened on ${reason.path} within ${reason.seconds} s, so no pod was restarted`;
    case "daemon-not-proven":
      return `pid ${reason.pid} is not proven to be who listens on ${reason.socket} from within one container of the runtime`;
    case "container-not-running":
      return `the runtime does not list container ${reason.containerId.slice(0, 13)} as running in a Ready sandbox`;
    case "no-kubelet":
      return "no kubelet runs that would start it again";
    case "file-refused":
    case "lock-refused":
      return reason.refusal.message;
    case "journal-refused":
    case "logs-not-saved":
      return `${reason.refusal.message} ${reason.refusal.next}`;
    case "marker-not-written":
      return `the marker ${reason.path} could not be written: ${reason.error}`;
    case "interrupted":
      return "the run was interrupted before it came to this";
    case "shared-cause": {
      const title = classById(reason.class)?.title ?? reason.class;
      return `${reason.times} removals in a row failed for the same cause (${reason.class}: ${title}); no more are tried until that is repaired: ${innermost(reason.text)}`;
    }
    case "removals-unanswered":
      return `${reason.times} removals in a row were not answered in time; no more are tried. Most likely a network plugin hangs: see unghost scan, and the log of the network add-on's pod on this node`;
    case "no-removal-answered":
      return `the first ${reason.count} removals have no answer, and none has succeeded; no more are tried. A network plugin or its daemon hangs: unghost scan names it. Repair that, then heal again`;
    case "runtime-error":
    case "api-error":
      return reason.message;
    case "process-unkillable":
      return `pid ${reason.pid} does not end: it is in the kernel (state D), and only a reboot helps`;
    case "status-unanswered":
      return `the runtime still does not answer Status: ${reason.why ?? "no plugin process is left that could hold it"}; restart the runtime`;
    case "daemon-still-silent":
      return `its container was stopped, and nothing answers on ${reason.socket} after ${reason.seconds} s: check its pod with kubectl describe`;
    case "address-not-released":
      return `${reason.address} could not be released: ${reason.why}`;
    case "del-undelivered":
      return `DEL of ${reason.network} did not reach its plugin: ${reason.failure}`;
    case "del-incomplete": {
      const { interfaces, plugins } = reason;
      const left =
        interfaces.length === 0 ? "" : ` Still on the node: interface ${interfaces.join(", ")} (ip link delete NAME).`;
      return `DEL of network ${reason.network} failed, so what its plugins (${plugins.join(", ")}) set up may remain: ${reason.failure}.${left}`;
    }
    case "unmount-failed":
      return `${reason.path} could not be unmounted: umount ${reason.error}`;
    case "unlink-failed":
      return `${reason.path} could not be removed: ${reason.error}`;
    case "sandbox-still-there": {
      const left = reason.left === "listed" ? "knows it" : "has its record";
      return `the runtime reported the sandbox as removed, and still ${left}`;
    }
    case "pod-still-there":
      return "its deletion was accepted, and the API still has it as it was";
  }
}

/** The plugin's own error, without the runtime's prefix, which names one sandbox. */
function innermost(text: string): string {
  return text.split(/failed \((?:add|delete)\): /).at(-1) ?? text;
}
