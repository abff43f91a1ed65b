import type { Detected, Evidence } from "../evidence/finding.ts";
import { isHeldInCluster } from "../evidence/pod-presence.ts";
import { type Creation, creationsUnderWay, isCreationDue } from "../evidence/sandbox-creations.ts";
import { hungProcess, type Step } from "../evidence/step.ts";
import { isRecorded, type NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import { runtimeUnreachable } from "../logs/context.ts";
import { type PodRef, parseSandboxName, type SandboxId } from "../node/types/ids.ts";
import type { PluginProcess } from "../node/types/runtime.ts";
import type { KnownPod } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

const decides =
  "Search for the holder's id. Not listed by the runtime: a creation is still in flight (this class). Listed and NotReady with attempts out of order, all pods at once: the clock stepped (A3). Threads in copy_net_ns: the kernel hangs (A7). Static pods on a kubelet with EventedPLEG: stale status (A9). Gone within ten minutes: it was only slow (N3).";

/** With this code the runtime itself ended the creation, and rolled it back: a deadline in the text was a part's own. */
const runtimeEndedIt =
  /code = unknown desc =|failed to (?:set ?up|create pod) network for|timed out: context (?:deadline|canceled)/;

/** Pulling the pause image is a registry problem, not a sandbox problem. */
const pullsAnImage = /pull image|pulling image|sandbox image|image_pull|pullimage|errimagepull|imagepullbackoff/;

export const sandboxNameHeldByInflightRun: ClassDefinition = {
  id: "sandbox-name-held-by-inflight-run",
  code: "A1",
  title: "Sandbox name held by a creation that never ended",
  explanation:
    "An earlier attempt to create this pod's sandbox is still running inside the runtime, usually because a network plugin hangs. The kubelet gave up after four minutes and tries again under the same name, but the name belongs to the attempt that never ended. The runtime lists nothing, so there is nothing to remove by hand.",
  mechanism:
    "RunPodSandbox reserves the name before anything else. When the caller's deadline passes, the server side stays in a step that ignores cancellation: a plugin process, an unshare, a mount, a shim start, a slow disk. The sandbox is not in the store yet, so the kubelet sees none and asks for the same attempt again.",
  signatures: () => [
    {
      text: 'failed to reserve sandbox name "<pod>_<namespace>_<uid>_<attempt>": name "<same>" is reserved for "<id>"',
      pattern: /failed to reserve sandbox name/,
      level: "symptom",
      confidence: 0.7,
      decides,
    },
    {
      text: '… name "<pod>_<namespace>_<uid>_<attempt>" is reserved for "<id>" (the front cut off)',
      pattern: /\bname [^\s_]{1,253}_[^\s_]{1,63}_[^\s_]{1,40}_\d{1,9} is reserved for/,
      level: "symptom",
      confidence: 0.6,
      decides,
    },
    {
      text: "Failed to create pod sandbox: rpc error: code = DeadlineExceeded desc = context deadline exceeded",
      pattern:
        /(?:create (?:a )?(?:pod sandbox|sandbox for pod)|(?<![a-z])createpodsandbox|runpodsandbox|run pod sandbox)[^]{0,600}?(?:deadline ?exceeded|context canceled|error code: cancel)/,
      unless: new RegExp(`${pullsAnImage.source}|${runtimeUnreachable.source}|${runtimeEndedIt.source}`),
      level: "symptom",
      confidence: 0.5,
      decides:
        "The creation took longer than the kubelet waits. If the next try answers `failed to reserve sandbox name`, the first one is still in flight; a process with CNI_CONTAINERID in its environment names the plugin that hangs.",
    },
    {
      text: "… failed (add): netplugin failed with no error message: signal: killed",
      pattern: /netplugin failed with no error message: (?:signal: killed|context (?:deadline exceeded|canceled))/,
      within: /failed ?\(add\)|set ?up/,
      during: "creating",
      level: "symptom",
      confidence: 0.5,
      decides:
        "Setting up the network took longer than the kubelet waits, and the runtime ended the plugin. If the next try answers `failed to reserve sandbox name`, the first one is still in flight. What the plugin waited for is in its own log or its daemon's.",
    },
    {
      text: "stream terminated by RST_STREAM with error code: CANCEL",
      pattern: /stream terminated by rst_stream with error code: cancel/,
      within: /pod ?sandbox/,
      level: "symptom",
      confidence: 0.5,
      decides,
    },
  ],
  logFragments: ["sandbox", "reserve"],
  inSnapshot:
    "The name's holder is not listed over CRI, and a process carries CNI_COMMAND=ADD with its id in the environment, or the logs name the holder and nothing else knows it.",
  versions: {
    since: "containerd 1.3; CRI-O reports the same in other words (O1)",
    until: "open",
    ends: "No upgrade. A network plugin that ends by its own deadline, and a CNI daemon with enough CPU and memory, prevent it.",
    note: "Kubelet 1.36 and later cancel more of their own calls, and make it more frequent.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "Find the process that carries the holder's id in CNI_CONTAINERID.",
      "End that plugin process; the runtime rolls the creation back and releases the name within seconds.",
      "Leave the next attempt to the kubelet.",
      "Where no process explains the holder: offer to delete the pod, which its controller makes again under another name.",
    ],
    gates: [
      "The holder is not listed over CRI.",
      "The plugin process is older than the in-flight grace (kubelet's four minutes, the rollback's one, and a margin); 30 seconds after kubelet or the runtime reported a timeout or a reserved name for this attempt, because no caller waits for its result any more.",
      "The process is not in uninterruptible sleep (then it is class A7).",
    ],
  },
  byHand: [
    "Find the hung plugin: grep -lz CNI_CONTAINERID=<id> /proc/[0-9]*/environ",
    "End that process, or delete the pod so that its controller makes a new one (a new uid is a new name).",
    "If many pods are stuck and no plugin process is found, restart the runtime (k3s, rke2-*, containerd); on Talos, reboot.",
  ],
  danger:
    "Do not act within the first five minutes: a slow start would be turned into a failed one. Never remove the record of a creation in flight with ctr: the name would stay reserved with nothing left to see.",
  links: [
    "containerd/containerd#12438",
    "containerd/containerd#9947",
    "containerd/containerd#8512",
    "k3s-io/k3s#14078",
    "google/gvisor#9011",
    "kubernetes/kubernetes#107561",
    "kubernetes/kubernetes#139097",
    "kubernetes/kubernetes#141599",
    "cozystack/cozystack#2310",
    "siderolabs/talos#13411",
  ],
  detect,
  deletesPodWithConsent: true,
};

function detect(view: NodeView): readonly Detected[] {
  return creationsUnderWay(view)
    .filter((creation) => isCreationDue(creation, view))
    .flatMap((creation) => heldBy(creation, view));
}

function heldBy({ id: sandboxId, plugin, lockedName }: Creation, view: NodeView): readonly Detected[] {
  const about = view.about(sandboxId);
  const name = lockedName ?? about.metadata?.name;
  const pod = name === undefined ? undefined : parseSandboxName(name);
  if (plugin === undefined && isNameUnused(pod, view)) return [];
  const remade = plugin === undefined ? recreation(pod, sandboxId, view) : [];
  const age = plugin === undefined ? "" : ` for ${durationInWords(plugin.ageSeconds)}`;
  return [
    {
      severity: "critical",
      subject: { type: "sandbox", sandboxId, name, pod, pid: plugin?.pid },
      summary: `the creation of this sandbox has been under way${age} and does not end; it holds the pod's name while the runtime lists nothing that could be removed`,
      evidence: evidenceOf(plugin, lockedName, isRecorded(about)),
      blocks: [blocked(plugin, pod, name)],
      blockedPods: [pod ?? plugin?.pod].flatMap((who) => who ?? []),
      cure: plugin === undefined ? remade : [{ kind: "end-process", ...hungProcess(plugin) }],
      attended: remade.length === 0 || pod === undefined ? undefined : recreateByConsent(pod),
    },
  ];
}

function evidenceOf(plugin: PluginProcess | undefined, lockedName: string | undefined, recorded: boolean): Evidence[] {
  const evidence: Evidence[] = [{ source: "cri", fact: "the runtime does not list it" }];
  if (plugin !== undefined) {
    evidence.push({
      source: "processes",
      fact: `pid ${plugin.pid} (${plugin.command}) carries CNI_COMMAND=ADD for it since ${durationInWords(plugin.ageSeconds)}`,
    });
  }
  if (lockedName !== undefined) evidence.push({ source: "logs", fact: `${lockedName} is reserved for it` });
  if (recorded) evidence.push({ source: "containerd", fact: "its record exists: the creation has started" });
  return evidence;
}

function blocked(plugin: PluginProcess | undefined, pod: PodRef | undefined, name: string | undefined): string {
  const who = pod ?? plugin?.pod;
  const podWords = who === undefined ? "a pod" : `pod ${who.namespace}/${who.name}`;
  return name === undefined ? `${podWords}: its name stays reserved` : `${podWords}: the name ${name} stays reserved`;
}

/** A recreated pod has another uid, and with it another, free name. */
function recreateByConsent({ namespace, name }: PodRef): readonly string[] {
  return [
    `Delete the pod: its controller creates a new one, whose sandbox name is free: kubectl --namespace ${namespace} delete pod ${name}`,
    `Or by unghost, which this allows: unghost heal ${namespace}/${name} --allow sandbox-name-held-by-inflight-run`,
  ];
}

/** Only for a pod with a controller that re-creates it: never a bare pod, a static one, or one that is opted out. */
function recreation(pod: PodRef | undefined, holder: SandboxId, view: NodeView): readonly Step[] {
  const { kubernetes, node } = view.snapshot;
  if (pod === undefined || kubernetes.source !== "api" || isHeldInCluster(pod, view)) return [];
  const { controller, objectUid } = knownPod(pod, view) ?? {};
  if (controller === undefined || objectUid !== undefined) return [];
  const { namespace, name, uid } = pod;
  return [{ kind: "kick-pod", namespace, name, uid, node: kubernetes.nodeName ?? node, holder }];
}

/** Whether the pod is finished or gone in the cluster: then its name blocks nothing. */
function isNameUnused(pod: PodRef | undefined, view: NodeView): boolean {
  if (pod === undefined || view.snapshot.kubernetes.source !== "api") return false;
  const known = knownPod(pod, view);
  return known === undefined || known.terminating === true;
}

function knownPod({ uid }: PodRef, { snapshot }: NodeView): KnownPod | undefined {
  return snapshot.kubernetes.source === "none" ? undefined : snapshot.kubernetes.pods.find((pod) => pod.uid === uid);
}
