import { printable, shellWord } from "../../host/text.ts";
import type { KubeError } from "../../kube/errors.ts";
import type { OneShot } from "./job.ts";
import type { Target } from "./target.ts";

/** Why a one-shot pod gave no report. */
export interface Failure {
  readonly code:
    | "pod-security"
    | "forbidden"
    | "refused"
    | "image"
    | "not-started"
    | "not-admitted"
    | "kubelet-down"
    | "not-linux"
    | "deadline"
    | "no-report"
    | "interrupted"
    | "api";
  /** One sentence, without a full stop. */
  readonly message: string;
  /** What to do: a sentence, or the command line. */
  readonly next: string;
}

export function isFailure(value: object): value is Failure {
  return "code" in value && "message" in value;
}

/** With heal, -n chooses the pods that are healed. */
function namespaceFlag({ args }: OneShot): string {
  return args[0] === "scan" ? "-n" : "--one-shot-namespace";
}

/** The API server's refusal of the pod. */
export function refusedBecause(error: KubeError, shot: OneShot, target: Target): Failure {
  const { namespace } = shot;
  const level = /violates PodSecurity "([a-z]+)/.exec(error.message)?.[1];
  if (level !== undefined) {
    return {
      code: "pod-security",
      message: `the namespace ${namespace} enforces the PodSecurity level "${level}", which refuses privileged pods`,
      next: `name a namespace that allows them with ${namespaceFlag(shot)} (most clusters exempt kube-system), or label one pod-security.kubernetes.io/enforce=privileged`,
    };
  }
  const verb = /cannot (\w+) resource "([^"]+)"/.exec(error.message);
  if (verb !== null) {
    return {
      code: "forbidden",
      message: `you may not ${verb[1]} ${verb[2]} in the namespace ${namespace}`,
      next: "bind the ClusterRole unghost-one-shot to your user there; who has it is root on every node",
    };
  }
  if (error.kind === "not-found") {
    return {
      code: "refused",
      message: `there is no namespace ${namespace}`,
      next: `name one that exists with ${namespaceFlag(shot)}`,
    };
  }
  const code = error.kind === "forbidden" || error.kind === "unreadable" ? "refused" : "api";
  return { code, message: printable(error.message), next: otherWay(shot, target) };
}

export function kubeletDown(shot: OneShot, target: Target, seen: string): Failure {
  return {
    code: "kubelet-down",
    message: `its kubelet is down (${seen}), so that no pod can start there`,
    next: otherWay(shot, target, { kubelet: false }),
  };
}

const OF_THE_POD = /^(?:-o|--dry-run|--plan=.*)$/;
const TALOS = /^Talos \(v(\d+)\.(\d+)/;

/**
 * The command line that does the same without a one-shot pod. Talos 1.13 and later runs an image's archive without
 * kubelet; elsewhere a dead kubelet leaves SSH.
 */
export function otherWay(
  { args, image, namespace }: OneShot,
  { name, address, osImage }: Target,
  { kubelet = true } = {},
): string {
  // What answers to a program, or was consented to here, is for the one-shot pod only: on the node, heal asks again.
  const words = args.filter((word, at) => !OF_THE_POD.test(word) && args[at - 1] !== "-o").map(shellWord);
  const talos = TALOS.exec(osImage);
  if (talos !== null && (Number(talos[1]) > 1 || Number(talos[2]) >= 13)) {
    return `talosctl -n ${shellWord(address)} debug unghost.tar --args ${[...words, "--host-root", "/host"].join(",")}`;
  }
  if (!kubelet) return `ssh ${shellWord(address)} sudo unghost ${words.join(" ")}`;
  const command = [`kubectl debug node/${shellWord(name)} -it --profile=sysadmin`, `-n ${shellWord(namespace)}`];
  return [...command, `--image=${shellWord(image)}`, "--", "unghost", ...words].join(" ");
}
