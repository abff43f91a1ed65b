import { truncate } from "../host/text.ts";
import { isCut, readable } from "./text.ts";

const QUOTED = '"?[^":]{0,300}"?';
const ID = '"?[0-9a-z<>…._-]{1,300}"?';

/** What writers put before the cause that they pass on, outermost first in a line. None of it is the reason of a failure. */
const WRAPPERS: readonly string[] = [
  "rpc error: code = \\w{1,30} desc =",
  "rpc error code = \\w{1,30} desc =",
  `failed to (?:set ?up|destroy|create) (?:pod )?network (?:namespace )?for (?:pod )?sandbox ${QUOTED}:`,
  // CRI-O names the sandbox in whatever it failed to do.
  '[a-z][^:"]{2,120} k8s_[^\\s()]{1,600}(?: in pod sandbox k8s_[^\\s()]{1,600})?\\([0-9a-f]{6,64}\\):',
  `error (?:adding|removing|deleting) (?:pod |container )?${QUOTED} (?:to|from) (?:CNI )?network ${QUOTED}:`,
  'plugin type="?[\\w./-]{1,80}"?(?: name="?[^"\\s]{1,120}"?)? failed \\(\\w{1,10}\\):',
  "networkPlugin \\w{1,20} failed to (?:set ?up|tear ?down) pod [^:]{1,300} network:",
  `(?:failed to (?:set ?up|clean ?up)|unable to set ?up) sandbox container ${QUOTED} network for pod ${QUOTED}:`,
  "Multus: \\[[^\\]]{1,400}\\]:",
  "\\[[\\w.-]{1,253}/[\\w.:/-]{1,400}\\]:",
  `(?:\\w*Delegate\\w*|conflist(?:Add|Del)|\\w*[Dd]elegate(?:Add|Del)|error in invok\\w{1,5}) ?(?:: error (?:in )?invok\\w{1,5} \\w{1,30})? - ${QUOTED}:`,
  "(?:(?:conflist|delegate)(?:Add|Del): )?error in getting result from \\w{1,30}:",
  `error in invok\\w{1,5} \\w{1,20} ?(?:add|del) - ${QUOTED}:`,
  "Error (?:while )?(?:adding|deleting) (?:(?:pod )?(?:to |from )?(?:cni )?)?network:",
  'using network plugins "?\\w{1,20}"?:',
  "failed to recover (?:sandbox )?state:",
  `failed to load (?:sandbox|container)(?: status)?(?: for)? ${ID}:`,
  "Cmd(?:Add|Del|Check) \\(shim\\):",
  "CNI request failed with status \\d{3}:",
  "(?:add|del) cmd:(?: Error received from \\w{1,20} gRPC call:)?",
  `failed to start sandbox (?:container (?:task )?)?${ID}:`,
  "failed to (?:create containerd task|create shim task|create containerd container|start shim|start sandbox container):",
  `failed to (?:stop|kill|remove|delete) (?:sandbox )?container ${ID}(?: in "?SANDBOX_\\w{1,12}"? state)?:`,
  `failed to (?:forcibly )?(?:stop|remove) (?:pod )?sandbox ${ID}(?: before removing)?:`,
  `failed to generate container ${ID} spec:`,
  "failed to apply OCI options:",
  "OCI runtime (?:create|start) failed:",
  "runc (?:create|start) failed:",
  "unable to start container process:",
  "container create failed:",
  '(?:Map|Mount|Unmount|Attach|Detach|UnmountDevice)(?:Volume)?(?:\\.\\w{1,40})? failed for volume "?[^"\\s]{1,300}"?(?: \\(UniqueName: [^)]{1,400}\\))?(?: pod "?[^"\\s]{1,300}"?)?(?: \\(UID: [^)]{1,80}\\))?(?: (?:on|from) node "?[^"\\s]{1,253}"?)? ?:',
  "kubernetes\\.io/csi: \\w{1,20}\\.\\w{1,40}(?: failed(?: to [^:]{1,80})?)?:",
  `failed to "?(?:KillPodSandbox|KillContainer|CreatePodSandbox|StartContainer)"? for ${QUOTED} with \\w{1,40}: "?`,
  `Failed (?:to )?create (?:a )?(?:pod sandbox|sandbox for pod ${QUOTED}):`,
  `(?:CreatePodSandbox|RunPodSandbox|StopPodSandbox|RemovePodSandbox) (?:for pod )?${QUOTED}(?: from runtime service)? failed:`,
  "(?:RunPodSandbox|StopPodSandbox|RemovePodSandbox|CreateContainer|StartContainer|StopContainer)[^:]{0,200}? failed:",
  "error killing pod: \\[?",
  'Error syncing pod[^:"]{0,300}skipping:',
  '(?:^|[\\s{,])"?err(?:or)?"?[=:] ?"',
  '(?:^|[\\s{,])"?(?:message|textPayload|note)"?: ?"',
  '(?:removing|stopping|run) (?:the )?pod sandbox(?: "?[0-9a-f]{10,64}"?)?(?: failed)?:',
  "(?:^|kubelet(?:, \\S{1,253})?\\s{1,20})Error: ",
  "\\berr: ?",
  "(?:^|\\s)error=(?=[a-z])",
  "\\bCaused by: (?:0: )?",
];

let wrapper: RegExp | undefined;

/** What the writers add behind the cause: klog's other fields, JSON's other properties, a count of the same. */
const AFTERWARDS =
  /"{1,4} (?!name=)[a-z][\w.-]{0,40}=(?!=)|"? (?:containerID|pod|podUID|podSandboxID|sandboxID|sandbox|cgroupName|logger|name|numErrs|pid|source|subsys|subsystem|volume|VolumeAttachment|path|id|runtime|namespace|filter)=|", ?"\w{1,30}": ?/i;
const TAIL = /(?:[\s"'`}\]<,:…│*]|(?<!<\w{1,20})>|\.{3})+$|(?:[\s"'`]*: unknown)[\s"'`}\]]*$/;

/** A wrapper that was cut off before its end. */
const UNFINISHED =
  /^(?:(?:rpc error: )?code = [\w ]{0,20}|rpc err\w*|(?:failed|unable) to (?:set ?up|destroy|create|start|stop|remove) [^:]*|plugin type=[^:]*|error (?:adding|removing|deleting) [^:]*|networkplugin [^:]*|\[[^\]]*|cni request failed[^:]*|\w{3,40}\.\w{3,40} failed for [^:]*)$/i;

/** A wrapper without anything behind it. */
const NO_CAUSE =
  /^(?:rpc error|(?:failed|unable) to (?:stop|remove|create|kill) (?:pod )?(?:sandbox|container)(?: for pod)?)$/i;

/** Longer quotations are of no use on a terminal. */
const MAX_CHARACTERS = 320;

/**
 * The innermost cause as its writer put it: what follows the last wrapper. Undefined if nothing does, as in a text that
 * a pager has cut off before it.
 */
export function innermostCause(line: string): string | undefined {
  const text = readable(line);
  wrapper ??= new RegExp(WRAPPERS.join("|"), "gi");
  wrapper.lastIndex = 0;
  let end: number | undefined;
  for (let match = wrapper.exec(text); match !== null; match = wrapper.exec(text)) end = match.index + match[0].length;
  end ??= startOfMessage(text);
  if (end === undefined) return undefined;
  const rest = text.slice(end);
  const cut = AFTERWARDS.exec(rest)?.index ?? rest.length;
  let cause = rest.slice(0, cut).replace(/^[\s"'`:[]+/, "");
  for (let shorter = cause.replace(TAIL, ""); shorter !== cause; shorter = cause.replace(TAIL, "")) cause = shorter;
  if (!/[a-z]{3}/i.test(cause) || NO_CAUSE.test(cause) || (UNFINISHED.test(cause) && isCut(line))) return undefined;
  return truncate(cause, MAX_CHARACTERS);
}

/** In a plugin's own log: the message is all there is. */
const MESSAGE = /\.go:\d{1,6}\] (?!")|"msg": ?"|\bmsg="|\[error\](?:\[\d{1,9}\])? (?:\S{1,60} \d{1,6}: )?/i;

function startOfMessage(text: string): number | undefined {
  const match = MESSAGE.exec(text);
  return match === null ? undefined : match.index + match[0].length;
}

/** Ids, names, addresses, paths and numbers: what differs from one node to the next. */
const VARIABLE =
  /"[^"]{0,200}"|'[^']{0,200}'|\S*\/\S*|\b[0-9a-f]{8,}\S*|\b\d[\w.:/-]*|\S*_\S*|[{}[\]()<>=]+|\b\S*\d{4,}\S*/gi;

/** The words of a cause that a search for other reports needs. */
export function searchWords(cause: string): string {
  return cause
    .replace(VARIABLE, " ")
    .replace(/["'`]|[:;,.]+(?=\s|$)/g, " ")
    .replace(/\s+/g, " ")
    .trim()
    .slice(0, 100)
    .trim();
}
