import { type Detected, namedPods } from "../evidence/finding.ts";
import { isHeldInCluster } from "../evidence/pod-presence.ts";
import type { NodeView } from "../evidence/view.ts";
import { usersOf } from "../evidence/volumes.ts";
import { durationInWords } from "../host/text.ts";
import type { Holder, KnownPod, Snapshot, UnattachedVolume } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const volumeAttachmentStuck: ClassDefinition = {
  id: "volume-attachment-stuck",
  code: "V1",
  title: "Volume that is neither attached to this node nor detached from it",
  explanation:
    "The cluster asked for a volume to be attached to this node, or detached from it, and minutes later that has not happened. Every pod that mounts it, here or on the node where it is needed next, waits in ContainerCreating. Often the volume is still attached to another node, or the driver's attacher is down.",
  mechanism:
    "The attach/detach controller makes a VolumeAttachment, and the driver's external-attacher carries it out and writes the result into its status. When the attacher is away, its storage refuses, or the volume is still attached where a dead node had it, the status stays at attached: false and is tried again with a growing pause. An attachment that is deleted keeps attached: true and its finalizer until the attacher has detached the volume.",
  signatures: () => [
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : timed out waiting for external-attacher of <driver> CSI driver to attach volume <handle>',
      pattern: /timed out waiting for external-attacher of \S{1,128} csi driver to attach volume/,
      confidence: 0.9,
    },
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : volume attachment is being deleted',
      pattern: /attachvolume\.attach failed for volume \S{1,253} ?: volume attachment is being deleted/,
      confidence: 0.9,
    },
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : attachment timeout for volume <handle>',
      pattern: /\battach(?:ment)? timeout for volume \S/,
      confidence: 0.7,
    },
    {
      text: 'Multi-Attach error for volume "<pv>" Volume is already exclusively attached to one node and can\'t be attached to another',
      pattern:
        /multi-attach error for volume|is already exclusively attached to one node|volume is already used by (?:pod|\d{1,3} pod)/,
      confidence: 0.9,
    },
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : … volume <handle> already attached to node <node>, and other refusals because another node has it',
      pattern:
        /(?:volume|disk|device|resource|pvc)\b[^]{0,200}?(?:already attached to|is attached to (?:a different|another|node)|attached to (?:a )?different (?:instance|node|vm)|in use by another|currently attached to|current status is (?:in-use|attaching|detaching|reserved))|the resource volume is in use|volumeinuse|code = failedprecondition desc = [^]{0,300}?attached/,
      within:
        /attachvolume|controllerpublish|failedattachvolume|attachdetach|csi-attacher|failed to attach|cannot (?:be )?attach|attaching the device/,
      confidence: 0.85,
    },
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : rpc error: … 409 / AttachDiskWhileBeingDetached / cannot attach data disk',
      pattern:
        /(?:statuscode=409|http (?:status )?(?:code )?409|\b409\b[^]{0,40}?conflict|conflict[^]{0,40}?\b409\b|attachdiskwhilebeingdetached|code=conflict|code = aborted)/,
      within: /attachvolume|controllerpublish|failedattachvolume|attachdetach|csi-attacher|failed to attach/,
      unless: /an operation with the given|already in progress/,
      confidence: 0.8,
    },
    {
      text: "could not attach volume <handle> to node <node>: … expected device to be attached but was attaching; volume <handle> failed to attach to node <node> with attachmentID <id>",
      pattern:
        /expected device to be (?:attached|detached) but was|volume \S{1,200} failed to attach to node \S{1,253}(?: with attachmentid|$)|is (?:in state )?(?:attaching|detaching)\b|volume is (?:being|still) (?:attached|detached)|waiting for (?:the )?volume to be detached/,
      within: /volume|disk|\bpvc|csi|attachdetach/,
      confidence: 0.8,
    },
    {
      text: 'DetachVolume.Detach failed for volume "<pv>" … / rpc error: … failed to detach',
      pattern:
        /detachvolume\.detach failed for volume|controllerunpublishvolume[^]{0,200}?(?:failed|error|code = )|failed to detach cns volume/,
      confidence: 0.8,
    },
    {
      text: "error reconciling … timed out waiting for volume to detach; force detach after 6m0s",
      pattern: /maxwaitforunmountduration|triggering force detach|force detach/,
      within: /volume|attach/,
      confidence: 0.75,
    },
    {
      text: 'AttachVolume.Attach failed for volume "<pv>" : rpc error: code = DeadlineExceeded desc = context deadline exceeded',
      pattern: /attachvolume\.attach failed for volume|failed to attach: rpc error/,
      within: /deadlineexceeded|deadline exceeded/,
      level: "symptom",
      confidence: 0.5,
      decides:
        "kubectl get volumeattachment: ATTACHED is false and AGE above five minutes. One slow attach is ordinary.",
    },
  ],
  logFragments: [
    "cns volume",
    "expected device",
    "attach timeout",
    "to attach to node",
    "failed to attach",
    "volume is ",
    "is in state ",
    "volume to be detached",
    "attachvolume.attach",
    "detachvolume.detach",
    "external-attacher",
    "attachment timeout",
    "multi-attach",
    "exclusively attached",
    "controllerpublish",
    "controllerunpublish",
    "attachdetach",
    "csi-attacher",
    "failed to attach",
    "cannot attach",
    "failedattachvolume",
    "force detach",
  ],
  inSnapshot:
    "The API lists a VolumeAttachment of this node with attached: false that is older than --volume-attachment-age, one whose deletion was asked for longer ago than that, or one of a volume that another node has as well; or a pod of this node has waited that long for a volume that only another node has; or an event reported longer ago than that that another node has the volume (Multi-Attach), and the pod is still Pending. Kubelet's own credentials may not list them: it takes a kubeconfig or a service account that may.",
  versions: {
    since: "every CSI driver with an external-attacher",
    until: "open",
    ends: "No upgrade. The taint out-of-service shortens the wait for a node that is off: Kubernetes 1.24, on by default since 1.26.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "If the volume is still attached to a node that is gone or not Ready, wait: the attach/detach controller detaches it by force six minutes after the last pod there is deleted, unless kube-controller-manager runs with --disable-force-detach-on-timeout.",
      "See who holds it: kubectl get volumeattachment shows every node that has the volume, kubectl describe its status and finalizers.",
      "If the attacher is silent or reports an error, repair the driver's controller: kubectl -n <driver's namespace> logs deploy/<controller> -c csi-attacher. It keeps trying.",
      "If that node is powered off for certain and must not be waited for: kubectl taint nodes <node> node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Take the taint off once the node is back.",
    ],
    gates: [],
  },
  byHand: [
    "Wait six minutes first: then the attach/detach controller takes the volume off a node that does not answer, unless the storage refuses.",
    "Only for a node that is certainly off: kubectl taint nodes <node> node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, and take the taint off when it is back.",
    "kubectl get volumeattachment, and kubectl describe the one of this node: check its status.",
    "kubectl -n <driver's namespace> logs deploy/<controller> -c csi-attacher",
    "kubectl get pods --all-namespaces -o wide, for pods that still use the claim on another node.",
  ],
  danger:
    "Never delete a VolumeAttachment or take its finalizer off while the volume may be in use: the storage is detached under a running program, or mounted on two nodes at once, and its file system is destroyed. The taint out-of-service does the same to a node that still runs.",
  links: [
    "kubernetes-csi/external-attacher#66",
    "longhorn/longhorn#5345",
    "longhorn/longhorn#2517",
    "kubernetes-sigs/aws-ebs-csi-driver#1107",
    "kubernetes-csi/external-attacher#215",
    "kubernetes/kubernetes#97230",
    "harvester/harvester#5040",
  ],
  detect,
  unread,
  countedAs: "volumeAttachmentsStuck",
};

function unread({ kubernetes }: Snapshot): string | undefined {
  if (kubernetes.source === "api") return kubernetes.unattachedUnread;
  return kubernetes.error ?? "no API server was asked";
}

function detect(view: NodeView): readonly Detected[] {
  return [...detectUnattached(view), ...detectMultiAttach(view)];
}

const MULTI_ATTACH = /^Multi-Attach error for volume "([^"]{1,253})"/;

/**
 * The attach/detach controller reports once that another node has the volume, and makes no attachment for this node
 * before that one is detached: only its event shows what the pod waits for.
 */
function detectMultiAttach(view: NodeView): readonly Detected[] {
  const { kubernetes, observedAt } = view.snapshot;
  if (kubernetes.source !== "api") return [];
  const explained = new Set((kubernetes.unattached ?? []).map(({ volume }) => volume));
  return (kubernetes.events ?? []).flatMap((event) => {
    const [, volume] = MULTI_ATTACH.exec(event.message) ?? [];
    const ageMs = observedAt.getTime() - (event.at?.getTime() ?? Number.NaN);
    if (volume === undefined || explained.has(volume) || !(ageMs >= view.policy.volumeAttachmentAgeMs)) return [];
    const pod = kubernetes.pods.find(({ namespace, name }) => namespace === event.namespace && name === event.pod);
    const isSame = event.uid === undefined || event.uid === (pod?.objectUid ?? pod?.uid);
    if (pod === undefined || !isSame || pod.phase !== "Pending" || pod.terminating === true) return [];
    const isHeld = isHeldInCluster({ ...pod, namespace: event.namespace }, view);
    return [
      {
        severity: "critical",
        subject: { type: "volume-attachment", name: volume },
        summary: `${volume} was still attached to another node ${inWords(ageMs)} ago, and the pod that needs it here has not started since`,
        evidence: [{ source: "kubernetes", fact: `event ${event.reason}, ${inWords(ageMs)} ago: ${event.message}` }],
        blocks: [`pod ${event.namespace}/${event.pod}`],
        blockedPods: namedPods([pod]),
        untreatable: isHeld ? "a pod that uses it is opted out by unghost.dev/ignore" : MULTI_ATTACH_ADVICE,
      } satisfies Detected,
    ];
  });
}

const MULTI_ATTACH_ADVICE =
  "it must be detached from the other node first: kubectl get volumeattachment shows which one has it. If a pod still uses it there, end that pod; if that node is gone or not Ready, the attach/detach controller detaches the volume by force six minutes after the pods there are deleted";

function detectUnattached(view: NodeView): readonly Detected[] {
  const { kubernetes, observedAt } = view.snapshot;
  if (kubernetes.source !== "api") return [];
  return (kubernetes.unattached ?? []).flatMap((attachment) => {
    const users = usersOf(attachment, kubernetes.pods);
    const pods = users.filter(({ phase }) => phase === "Pending");
    const ageMs = observedAt.getTime() - stuckSince(attachment, pods).getTime();
    // An invalid time is no evidence of how long it has waited.
    if (!(ageMs >= view.policy.volumeAttachmentAgeMs)) return [];
    const isHeld = users.some((pod) => isHeldInCluster({ ...pod, namespace: pod.namespace ?? "" }, view));
    const facts = [
      statusOf(attachment),
      ...(attachment.inUse && attachment.deletedAt !== undefined ? ["kubelet reports it in use on this node"] : []),
      ...attachment.holders.map(holderInWords),
      attacherInWords(attachment, observedAt),
      ...controllerInWords(attachment, observedAt),
      ...attachment.unknown,
      ...(isHeld ? ["one of its pods is opted out by unghost.dev/ignore"] : []),
    ];
    return [
      {
        severity: pods.length > 0 || isDoubled(attachment) ? "critical" : "warning",
        subject: { type: "volume-attachment", name: attachment.name },
        summary: summaryOf(attachment, ageMs),
        evidence: facts.map((fact) => ({ source: "kubernetes", fact })),
        blocks: pods.map(({ namespace, name }) => `pod ${namespace}/${name}`),
        blockedPods: namedPods(pods),
        untreatable: isHeld
          ? "a pod that uses it is opted out by unghost.dev/ignore"
          : adviceOn(attachment, users, observedAt),
      } satisfies Detected,
    ];
  });
}

/** An attachment of another node is as it should be: what counts is how long the pod has waited. */
function stuckSince({ awaited, deletedAt, createdAt }: UnattachedVolume, waiting: readonly KnownPod[]): Date {
  if (awaited !== true) return deletedAt ?? createdAt;
  const times = waiting.flatMap(({ waitingSince }) => (waitingSince === undefined ? [] : [waitingSince.getTime()]));
  return new Date(times.length === 0 ? Number.NaN : Math.min(...times));
}

/** Attached here and elsewhere at the same time, and neither is being detached. */
function isDoubled({ attached, deletedAt, awaited, holders }: UnattachedVolume): boolean {
  return attached && deletedAt === undefined && awaited !== true && holders.some(({ deleting }) => !deleting);
}

function summaryOf(attachment: UnattachedVolume, ageMs: number): string {
  const { volume = "a volume", deletedAt, attached, awaited, missing, holders } = attachment;
  if (missing === true)
    return `${volume} is not attached to any node, and no attachment to this one was requested for ${inWords(ageMs)}`;
  const [holder] = holders;
  if (awaited === true && holder !== undefined)
    return `${volume} is attached to ${holder.node}${stateInWords(holder)}, and the pod that needs it here has waited for ${inWords(ageMs)}`;
  if (isDoubled(attachment) && holder !== undefined)
    return `${volume} is attached to this node and to ${holder.node} at once`;
  if (deletedAt === undefined) return `${volume} is not attached to this node after ${inWords(ageMs)}`;
  const what = attached ? "is still attached to this node" : "is not attached to this node";
  return `${volume} ${what} ${inWords(ageMs)} after its attachment was deleted`;
}

function statusOf({ attacher, attached, error, deletedAt, finalizers, missing }: UnattachedVolume): string {
  if (missing === true)
    return `there is no VolumeAttachment of it, and ${attacher} volumes are attached before they are mounted`;
  const status = error === undefined ? "its status gives no reason" : `its status: ${error}`;
  const ending = deletedAt === undefined ? "" : `; its deletion waits for ${finalizers.join(", ") || "the API server"}`;
  return `attached: ${attached} by ${attacher}; ${status}${ending}`;
}

function holderInWords(holder: Holder): string {
  const { node, deleting, state, pods } = holder;
  const use = state?.kind === "there" && state.inUse ? ", where kubelet reports it in use" : "";
  const users = pods === undefined ? "" : pods.length === 0 ? ", and no pod there uses it" : `, by ${pods.join(", ")}`;
  const asked = deleting ? ", and its attachment there is being deleted" : "";
  return `the same volume is attached to ${node}${stateInWords(holder)}${use}${users}${asked}`;
}

function stateInWords({ state }: Holder): string {
  if (state === undefined) return "";
  if (state.kind === "gone") return ", which is gone from the cluster";
  return `, which is ${state.ready ? "Ready" : "not Ready"}${state.cordoned ? " and cordoned" : ""}`;
}

/** Only if it is known: kube-controller-manager without leader election holds no lease. */
function controllerInWords({ controllerLease: lease }: UnattachedVolume, now: Date): readonly string[] {
  if (lease === undefined || !isSilent(lease, now)) return [];
  return [
    `kube-controller-manager is silent: ${lease.holder} last renewed its lease ${inWords(quietMs(lease, now))} ago`,
  ];
}

/** Clocks of two machines differ, and a renewal may be late once. */
const CLOCK_TOLERANCE_SECONDS = 60;

function attacherInWords({ attacher, lease, unknown }: UnattachedVolume, now: Date): string {
  if (lease === undefined) {
    const why = unknown.length > 0 ? "" : ": it holds no lease external-attacher-leader-…";
    return `whether the attacher ${attacher} works is unknown${why}`;
  }
  return isSilent(lease, now)
    ? `the attacher ${attacher} is silent: ${lease.holder} last renewed its lease ${inWords(quietMs(lease, now))} ago`
    : `the attacher ${attacher} works: ${lease.holder} renews its lease`;
}

type Lease = NonNullable<UnattachedVolume["lease"]>;

function isSilent(lease: Lease, now: Date): boolean {
  return quietMs(lease, now) > (lease.durationSeconds + CLOCK_TOLERANCE_SECONDS) * 1000;
}

function quietMs({ renewedAt }: Lease, now: Date): number {
  return now.getTime() - renewedAt.getTime();
}

const ALREADY_ATTACHED = /already (?:been )?attached|is attached to|currently attached|in use/i;

/** What will happen, or what is to be done: unghost changes no object of the cluster's storage. */
function adviceOn(attachment: UnattachedVolume, users: readonly KnownPod[], now: Date): string {
  const { attacher, lease, error, deletedAt, finalizers, holders, inUse } = attachment;
  const [holder] = holders;
  const isAttacherSilent = attachment.missing !== true && lease !== undefined && isSilent(lease, now);
  const repairAttacher = `the attacher ${attacher} is silent: check its pod (${lease?.holder}); it continues once that runs`;
  if (deletedAt === undefined && holder !== undefined) {
    if (holder.deleting && isAttacherSilent)
      return `it must be detached from ${holder.node} first, and ${repairAttacher}`;
    return isDoubled(attachment) ? adviceOnDoubled(holder) : adviceOnHolder(holder, attachment, now);
  }
  if (isAttacherSilent) return repairAttacher;
  if (deletedAt !== undefined) {
    const waitsFor = finalizers.join(", ") || "the API server";
    return `it is deleted already and waits for ${waitsFor}: get the attacher ${attacher} to work`;
  }
  const why = error === undefined ? "" : ` (${error})`;
  if (attachment.missing === true)
    return "the attach/detach controller of kube-controller-manager has not asked for it: check that kube-controller-manager runs, and what it logs";
  if (inUse && users.some(({ phase }) => phase === "Running"))
    return `the storage has it attached here, and its pods run: only its status is wrong${why}. Leave it, and see what the attacher ${attacher} logs`;
  if (error !== undefined && ALREADY_ATTACHED.test(error))
    return `manual: the storage has it attached already${why}. See in the storage where, and what the attacher ${attacher} logs; it keeps trying`;
  if (lease === undefined && error === undefined && !finalizers.some((one) => one.startsWith("external-attacher/")))
    return `no attacher has taken it up: check that the controller of the driver ${attacher} runs, with its csi-attacher`;
  return `manual: see what the attacher ${attacher} logs${why}; it keeps trying`;
}

function adviceOnDoubled({ node, pods }: Holder): string {
  const there = pods === undefined || pods.length === 0 ? "" : ` (${pods.join(", ")})`;
  return `end the pods that use it on this node or on ${node}${there}: the attach/detach controller then detaches it there. Delete neither attachment: writes of both nodes destroy the file system`;
}

function adviceOnHolder(
  { node, deleting, state, pods }: Holder,
  { controllerLease }: UnattachedVolume,
  now: Date,
): string {
  const first = `it must be detached from ${node} first`;
  if (deleting) return `${first}, which is asked for: see what the attacher logs`;
  if (controllerLease !== undefined && isSilent(controllerLease, now))
    return `${first}, and kube-controller-manager, which asks for that, is silent: check its pod (${controllerLease.holder})`;
  if (state === undefined) return `${first}: see kubectl describe node ${node}`;
  const forced = "the attach/detach controller does that by force six minutes after the pods there are deleted";
  const left = pods === undefined || pods.length === 0 ? "" : ` (there are: ${pods.join(", ")})`;
  if (state.kind === "gone") return `${first}, which is gone: ${forced}${left}`;
  if (!state.ready)
    return `${first}, which is not Ready: ${forced}${left}; or at once with the taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, which destroys data unless ${node} is powered off for certain`;
  if (state.inUse && pods?.length === 0)
    return `${first}, where kubelet reports it in use and no pod uses it any more: a pod was deleted by force there, or kubelet still unmounts it. See on ${node} whether a container of it still runs, and what kubelet logs`;
  if (state.inUse)
    return `${first}, where it is in use${pods === undefined ? "" : ` by ${pods.join(", ")}`}: end the pods there${state.cordoned ? " (drain the node)" : ""}`;
  return `${first}, where it is not in use: see what kube-controller-manager logs`;
}

function inWords(milliseconds: number): string {
  return durationInWords(Math.floor(milliseconds / 1000));
}
