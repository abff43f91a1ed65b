import { isOfOtherProgram } from "./context.ts";

/** What kubelet, the runtime, a network plugin or a volume's driver failed to do. */
export type Operation =
  | "create-sandbox"
  | "stop-sandbox"
  | "remove-sandbox"
  | "cni-add"
  | "cni-del"
  | "cni-check"
  | "cni-status"
  | "create-container"
  | "start-container"
  | "stop-container"
  | "remove-container"
  | "attach"
  | "detach"
  | "mount"
  | "unmount"
  | "volume"
  | "recover"
  | "list"
  | "runtime-status";

interface Wording {
  readonly operation: Operation;
  /** Tested against a line after normalise(). Linear: every gap is bounded. */
  readonly pattern: RegExp;
}

/** All writers of this field: the sandbox before its parts, because its message quotes theirs. The first in the text counts. */
const SANDBOX: readonly Wording[] = [
  {
    operation: "create-sandbox",
    pattern:
      /failed(?: to)? create (?:a )?(?:pod ?sandbox|sandbox for pod|new sandbox)|failedcreatepodsandbox|createpodsandbox(?:error| (?:for|from|in)\b[^]{0,300}? (?:failed|error))|runpodsandbox\b[^]{0,300}? failed|run(?:ning)? pod ?sandbox(?: \S{0,80})?(?: failed)?:|error creating pod sandbox|failed to (?:set ?up|create) (?:pod )?network (?:namespace )?(?:for )?(?:pod )?sandbox|failed to create pod network sandbox|failed to set ?up sandbox container|failed to set ?up network for pod|setupnetworkerror|networkplugin \S{1,20} failed to set ?up pod|failed to (?:start sandbox|reserve sandbox name|create sandbox|get sandbox (?:image|runtime))\b|error reserving pod name|unable to create pod sandbox|create(?: new)? sandbox failed/,
  },
  {
    operation: "remove-sandbox",
    pattern:
      /removepodsandbox\b[^]{0,200}? failed|failed to remove (?:pod )?sandbox\b|failed to delete sandbox container|removing the pod sandbox\b[^]{0,120}?(?:failed|:)|remove sandbox \S{1,80} failed|error removing (?:pod )?sandbox|failed to remove pod sandbox|could not remove (?:pod )?sandbox/,
  },
  {
    operation: "stop-sandbox",
    pattern:
      /killpodsandboxerror|failed to killpodsandbox|stoppodsandbox\b[^]{0,200}? failed|failed to (?:forcibly )?stop (?:pod )?sandbox\b|stop pod ?sandbox \S{0,80} failed|stopping the pod sandbox\b[^]{0,120}?(?:failed|:)|failed to destroy (?:pod )?network for\b|networkplugin \S{1,20} failed to tear ?down|failed to clean ?up sandbox container|teardownnetworkerror|failed to tear ?down (?:pod )?(?:network|sandbox)|error stopping (?:pod )?sandbox|failed to delete pod sandbox|killpodwithsyncresult failed|error stopping network on cleanup|error cleaning up failed sandbox|failed to fully teardown sandbox|failed to handle sandbox (?:taskexit|exit)|error (?:while )?(?:deleting|removing) (?:pod )?\S{1,400} from (?:cni )?network|failed to stop infra container|failed to unmount ns|remove netns:|failed to remove network namespace/,
  },
];

const OTHERS: readonly Wording[] = [
  {
    operation: "unmount",
    pattern:
      /unmount(?:volume\.\w{1,40}|device) failed|getdevicemountrefs check failed|error cleaning subpath mounts|orphaned pod\b[^]{0,80}? found, but|failed to unmount volume|nodeun(?:publish|stage)volume\b[^]{0,200}?(?:failed|error)|unmounter\.\w{1,40} failed|failed to unmount\b[^]{0,200}?\/kubelet\/|volume\.\w{1,20}unmount failed|\/kubelet\/\S{1,400}: (?:target is busy|device or resource busy|directory not empty)|umount: \S{0,40}\/kubelet\//,
  },
  {
    operation: "detach",
    pattern:
      /detachvolume\.\w{1,20} failed|controllerunpublishvolume\b[^]{0,200}?(?:failed|error|code =)|failed to detach\b[^]{0,200}?volume|could not detach volume|volume\b[^]{0,120}? failed to detach|faileddetachvolume|\bdetacherror: |failed to detach: /,
  },
  {
    operation: "attach",
    pattern:
      /attachvolume\.\w{1,20} failed|failedattachvolume|multi-attach error|controllerpublishvolume\b[^]{0,200}?(?:failed|error|code =)|(?:failed|unable|could not) (?:to )?attach\b(?! or mount)[^]{0,120}?(?:volume|disk|pvc)|failed to attach: |volume \S{1,200} failed to attach to node|attachment of disk \S{1,120} failed|\battacherror: |waitforattach failed|error attaching (?:ebs )?volume/,
  },
  {
    operation: "mount",
    pattern:
      /mountvolume\.\w{1,40} failed|failedmount\b|mountdevice failed|unable to (?:attach or )?mount volumes|failedmapvolume|mapvolume\.\w{1,30} failed|node(?:publish|stage)volume\b[^]{0,200}?(?:failed|error)|failed to mount\b[^]{0,200}?(?:volume|\/kubelet\/)|timeout expired waiting for volumes to attach|mount failed: exit status \d|error mounting volume|unmounted volumes=\[[^\]]{1,300}\][^]{0,200}?timed out/,
  },
  {
    operation: "remove-container",
    pattern:
      /removecontainer\b[^]{0,200}? failed|failed to remove container\b|removing (?:the )?container\b[^]{0,120}? failed|failed to delete container\b|cannot delete (?:a )?running task\b/,
  },
  {
    operation: "stop-container",
    pattern:
      /stopcontainer\b[^]{0,200}? failed|failed to (?:killcontainer|kill container|stop container)\b|killcontainererror|container \S{1,90} failed to (?:stop|exit)|cannot (?:stop|kill) container\b|failedkillpod|error killing pod|unknown error after kill|did not kill the pod within/,
  },
  {
    operation: "create-container",
    pattern:
      /createcontainer\b[^]{0,300}? failed|createcontainererror|failedcreatepodcontainer|failed to (?:reserve container name|generate container \S{1,90} spec|create containerd container|ensure that the pod\b[^]{0,80}? cgroups)|unable to ensure pod container exists|error creating container\b/,
  },
  {
    operation: "start-container",
    pattern:
      /startcontainer\b[^]{0,300}? failed|failed to startcontainer\b|runcontainererror|failed to (?:create containerd task|create shim task|start shim|start container)\b|oci runtime (?:create|error)|container create failed/,
  },
  {
    operation: "recover",
    pattern:
      /failed to recover (?:sandbox )?state\b(?=[^]{0,200}?(?:sandbox|container|cri\b))|failed to load (?:sandbox|container)(?: status)?\b|could not restore (?:sandbox|container)|failed to run cri service|failed to (?:restore|recover) (?:sandbox|container)|map of initial containers/,
  },
  {
    operation: "list",
    pattern:
      /pleg is not healthy: pleg was last seen active (?!2562047h)|(?:list(?:podsandbox|containers|podsandboxstats)|podsandboxstatus|containerstatus)\b[^]{0,200}? failed|unable to retrieve pods|listing pod ?sandbox(?:es)?\b[^]{0,40}?:|listing containers\b[^]{0,40}?:/,
  },
  {
    operation: "runtime-status",
    pattern:
      /status from runtime service failed|container runtime is down|container runtime network not ready|networkready=false|networkpluginnotready|network plugin is not ready|cni plugin (?:is )?not ready|container runtime sanity check failed/,
  },
];

const PLUGIN_CALLS: readonly Wording[] = [
  {
    operation: "cni-del",
    pattern:
      /failed ?\((?:delete|del)\)|\bcmddel\b[^]{0,20}?:|del cmd: |(?:delegate|conflist)del(?:egate)?: |error (?:while )?(?:deleting|removing) (?:container|pod|network)\b[^]{0,200}?(?:network|:)|error in invok\w{1,5} \w{0,20} ?del\b|teardownpodnetwork: |delnetwork: |del finished cni request[^]{0,1200}?err: (?!<nil>|nil\b)\S|del error: |error deleting network|hcn(?:delete|close)\w{3,30} failed|failed to (?:delete|remove) (?:hcn )?endpoint|\bcni del\b[^]{0,60}?(?:error|fail)|(?:error|failed)[^]{0,40}?\bcni del\b|\bdel command\b[^]{0,60}?err(?:or)?:|failed to get network \S{1,120} cached result/,
  },
  { operation: "cni-check", pattern: /failed ?\(check\)|\bcmdcheck\b[^]{0,20}?:/ },
  { operation: "cni-status", pattern: /failed \(status\)|cni status\b[^]{0,60}?(?:failed|error)/ },
  {
    operation: "cni-add",
    pattern:
      /failed ?\(add\)|\bcmdadd\b[^]{0,20}?:|add cmd: |(?:delegate|conflist)add(?:egate)?: |error adding (?:container|pod|network|\S{1,300} to (?:cni )?network)\b|error in invok\w{1,5} \w{0,20} ?add\b|addnetwork: |add finished cni request[^]{0,1200}?err: (?!<nil>|nil\b)\S|add error: |networkplugin \S{1,20} failed|failed to (?:setup|configure) pod (?:interface|network)|erroraddinglogicalport|creation of endpoint failed|hcn(?:create|open)\w{3,30} failed|multus: \[[^\]]{1,400}\]: error/,
  },
];

/** A plugin's own log, by what it writes before each line. */
const PLUGIN_LOG: readonly Wording[] = [
  { operation: "cni-add", pattern: /\[error\][^]{0,60}?(?:ipam|cni|plugin\.go)/ },
];

/** The wrappers of kubelet and of a CSI driver: which operation is inside may be cut off. */
const WRAPPED: readonly Wording[] = [
  { operation: "volume", pattern: /operation for \{volumename:\S{1,400}[^]{0,200}? failed/ },
  { operation: "volume", pattern: /grpc error: rpc error: code = (?!notfound)[^]{0,300}?volume/ },
];

const GROUPS: readonly (readonly Wording[])[] = [SANDBOX, OTHERS, PLUGIN_CALLS];

/** Wording that none of the tables has: what it is about, that it fails, and the verb, wherever they stand. */
const FAILS =
  /\b(?:fail(?:ed|s|ure|ing)?|error|err|unable|cannot|can not|could not|couldnt|timed out|timeout|refused|denied|panic|fatal|stuck)\b/;
const ORDINARY =
  /\blevel=(?:info|debug)\b|level:(?:info|debug)\b|\[(?:info|debug)\]|(?:^|\s)i\d{4} \d\d:\d\d:\d\d|deprecated|will (?:be removed in|not be pruned)/;
/** What a line of an error's level starts with: klog, logfmt, JSON, calico. */
const ERROR_LEVEL =
  "(?:\\b[ew]\\d{4} \\d\\d:\\d\\d:\\d\\d|\\blevel[=:](?:error|warning|fatal)|\\[(?:error|warning)\\]|(?:erro|warn|fata)\\[)";
/** A name that only this field has, or a name of parts that others have as well in a log line of an error's level. */
const FIELD = new RegExp(
  [
    "(?:sandbox|container(?:id)?)\\b[^]{0,300}?\\b[0-9a-f]{64}\\b",
    "\\b(?:pods?|kube\\w*|containerd|cri-?o?|crictl|k3s|rke2|kubernetes|csi|cni)\\b",
    "\\bk8s_\\w",
    `${ERROR_LEVEL}[^]{0,400}?\\b(?:runtime|shim|plugin|nic|ovs|ovn|eni|ipam|endpoint|sandbox\\b[^]{0,80}?\\b[0-9a-f]{12,64})\\b`,
  ].join("|"),
);
const ABOUT: readonly (readonly [RegExp, readonly Wording[]])[] = [
  [
    /sandbox/,
    [
      { operation: "stop-sandbox", pattern: /stop|kill|destroy|tear|releas|unmount|terminat|del cmd|\bdel\b/ },
      { operation: "remove-sandbox", pattern: /remov|delet|clean|garbage/ },
      { operation: "create-sandbox", pattern: /creat|\brun|start|set ?up|reserv|\badd\b|allocat/ },
    ],
  ],
  [
    /\bcni\b|netns|network namespace|network plugin|networkplugin/,
    [
      { operation: "cni-del", pattern: /\bdel\b|delet|remov|releas|tear|destroy|stop/ },
      { operation: "cni-add", pattern: /\badd|creat|set ?up|allocat|assign|open|load|start|initializ/ },
    ],
  ],
  [
    /volume|\bpvc\b|\bcsi\b|\/kubelet\/(?:pods|plugins)\//,
    [
      { operation: "unmount", pattern: /un-?mount|unstag|unpublish|teardown|rmdir|clean/ },
      { operation: "detach", pattern: /detach/ },
      { operation: "attach", pattern: /attach/ },
      {
        operation: "mount",
        pattern: /mount|stag|publish|format|device|grpc error|error (?:sync|process)ing|could not sync/,
      },
    ],
  ],
  [/orphaned pod/, [{ operation: "unmount", pattern: /remov|delet|clean/ }]],
  [
    /kubepods|pod cgroup|\bcgroup\b[^]{0,200}?\bpod/,
    [
      { operation: "remove-container", pattern: /destroy|delet|remov|clean/ },
      { operation: "create-container", pattern: /creat|set\b|apply|write/ },
    ],
  ],
  [
    /sandbox/,
    [
      { operation: "recover", pattern: /load|restor|recover|checkpoint|read\b/ },
      { operation: "create-sandbox", pattern: /generat|config\b|\bsav|handler|runtime class|mount/ },
      { operation: "list", pattern: /list|status|\bget|find|query|retriev|updat|wait/ },
    ],
  ],
  [
    // The log of a plugin's daemon names the parts of a pod's network, and not the call.
    new RegExp(
      `${ERROR_LEVEL}[^]{0,2000}?(?:\\b(?:nic|interfaces?|endpoints?(?! ?slice)|veth|ovs|ovn|eni|ipam|hns|vf|ns network)\\b|setupns|teardownns)`,
    ),
    [
      { operation: "cni-del", pattern: /\bdel\b|delet|remov|releas|tear|unplu[mg]|clean|deconfigur|detach/ },
      { operation: "cni-add", pattern: /\badd|creat|set ?up|configur|assign|allocat|plu[mg]|attach|move|setupns/ },
    ],
  ],
  [
    // A description of a pod has these words too: only lines of an error's level.
    new RegExp(`${ERROR_LEVEL}[^]{0,2000}?container(?!d\\b|manager)`),
    [
      { operation: "stop-container", pattern: /\bkill|stopp?(?:ing)?\b|terminat/ },
      { operation: "remove-container", pattern: /remov|delet|garbage/ },
    ],
  ],
];
/** Numbers about containers, and of what no longer exists: nothing is done with them. */
const NUMBERS = /stats?\b|metrics?\b|cadvisor|summary|\busage\b|probably been (?:removed|stopped) already/;

function byItsWords(text: string): Operation | undefined {
  if (!FAILS.test(text) || ORDINARY.test(text) || !FIELD.test(text) || NUMBERS.test(text)) return undefined;
  for (const [about, wordings] of ABOUT) {
    const operation = about.test(text) ? firstIn(wordings, text) : undefined;
    if (operation !== undefined) return operation;
  }
  return undefined;
}

/** A removal of what is gone already, and a text about a status: no operation that failed. */
const NOTHING_FAILED =
  /cleanup warnings time=|error while processing event [^]{0,200}?\/sys\/fs\/cgroup\/|failed to reset devices\.list|(?:code = notfound desc = )?an error occurred when try to find (?:sandbox|container)|could not find (?:sandbox|container)|code = notfound desc = (?:could not find|container with id)/;

/** What failed according to a text from normalise(); undefined if it contains no failing operation of this field. */
export function operationIn(text: string): Operation | undefined {
  if (NOTHING_FAILED.test(text) || isOfOtherProgram(text)) return undefined;
  for (const wordings of GROUPS) {
    const operation = firstIn(wordings, text);
    if (operation !== undefined) return operation;
  }
  return byItsWords(text) ?? firstIn(PLUGIN_LOG, text) ?? firstIn(WRAPPED, text);
}

/**
 * Wordings that are not of this field alone: code runners, browsers, build tools and databases have sandboxes, volumes,
 * networks and containers of their own.
 */
const SHARED =
  /^(?:failed|error|unable|cannot|could not)(?: to)?(?: while)? \w{3,12} (?:an? |the |infra )?(?:new |local |virtual )?(?:sandbox|container|network|volume|disk|ns\b)(?! (?:name|image|runtime))|^failed ?\((?:delete|del|add)\)$|^create(?: new)? sandbox/;
/** Names, paths, ids and headers that only kubelet, a runtime, a plugin or a driver writes. */
const OURS =
  /\b(?:pods?|kube\w*|k8s\w*|containerd|cri|cri-?o|crictl|k3s|rke2|microk8s|dockershim|cri-dockerd|isulad|dockerd|runc|crun|kata|runsc|conmon|shim|cni|csi|netns|multus|clusternetwork)\b|\w{0,20}pod_?sandbox|for sandbox\b|plugin type=|networkplugin|failed(?:create|kill|mount|attach|sync)\w|volume\.\w{3,40} failed|(?:node|controller)(?:un)?(?:stage|publish)volume|attachdetach|kubernetes|\/kubelet\/|(?:from|to) node\b|\bpvc-|\b(?:[0-9a-f]{64}|[0-9a-f]{13})\b|[iwef]\d{4} \d\d:\d\d:\d\d\.\d/;

const CREATING: readonly Operation[] = ["create-sandbox", "cni-add"];
const REMOVING: readonly Operation[] = ["stop-sandbox", "remove-sandbox", "cni-del"];

/**
 * Whether the text reports a failed creation or a failed removal; undefined if it reports both or none. The same cause
 * may mean one thing on ADD and another on DEL.
 */
export function directionOf(text: string): "creating" | "removing" | undefined {
  const failed = (operations: readonly Operation[]) =>
    [...SANDBOX, ...PLUGIN_CALLS].some(
      ({ operation, pattern }) => operations.includes(operation) && pattern.test(text),
    );
  const creates = failed(CREATING);
  return creates === failed(REMOVING) ? undefined : creates ? "creating" : "removing";
}

function firstIn(wordings: readonly Wording[], text: string): Operation | undefined {
  let first: { readonly operation: Operation; readonly index: number } | undefined;
  for (const { operation, pattern } of wordings) {
    const match = pattern.exec(text);
    if (match === null || (first !== undefined && match.index >= first.index)) continue;
    if (SHARED.test(match[0]) && !OURS.test(text)) continue;
    first = { operation, index: match.index };
  }
  return first?.operation;
}
