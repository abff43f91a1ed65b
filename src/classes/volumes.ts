import { type Detected, namedPods } from "../evidence/finding.ts";
import { isHeldInCluster, kubeletUpMs } from "../evidence/pod-presence.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../host/text.ts";
import type { KnownPod, PodVolumes } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const csiOperationInFlight: ClassDefinition = {
  id: "csi-operation-in-flight",
  code: "V2",
  title: "An earlier operation for this volume hangs in its driver",
  explanation:
    "The volume's driver refuses a second operation because an earlier one for the same volume has not ended. One that never ends keeps the volume's lock, so every mount, unmount or provisioning of it is refused until the hung operation ends.",
  mechanism:
    "CSI drivers lock each volume id while they work on it and answer Aborted to the second caller. A command of the driver (rbd, rados, mount) that waits for storage that does not answer keeps the lock.",
  signatures: () => [
    {
      text: "rpc error: code = Aborted desc = an operation with the given Volume ID <id> already exists",
      pattern: /an operation with the given (?:volume|snapshot|target path|source volume)[^]{0,300}? already exists/,
      confidence: 0.95,
    },
    {
      text: "rpc error: code = Aborted desc = … is already in progress / operation for volume <id> pending",
      pattern:
        /code = aborted desc = [^]{0,200}?(?:already (?:in progress|in process|being processed|exists)|in-flight|in flight|pending operation|still ongoing|operation pending)/,
      within: /volume|mount|csi|pvc|stag/,
      confidence: 0.85,
    },
  ],
  logFragments: ["operation with the given", "aborted"],
  inSnapshot: "What a driver does inside its container is not visible from the node; its processes there show it.",
  versions: {
    since: "every driver with a lock for each volume, reported most for ceph-csi",
    until: "open",
    ends: "No upgrade: storage that answers.",
    note: "One line that does not repeat is ordinary: the caller was faster than the driver.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "If it ends within minutes, wait: the earlier operation was only slow.",
      "Find the hung command in the driver's container on this node: ps -ef | grep -E 'rbd|rados|ceph|mount'.",
      "Repair what it waits for: the network to the storage's monitors (also port 3300), a storage daemon with a wrong address.",
      "Only then restart the driver's pod on this node, which drops its locks.",
    ],
    gates: ["The storage answers from this node again."],
  },
  byHand: [
    "kubectl -n <driver's namespace> exec <node plugin's pod of this node> -c <driver> -- ps -ef",
    "kubectl -n <driver's namespace> logs <the same pod> -c <driver>: the first call for this volume id that never ends.",
    "Processes in state D end only with the storage, or with a reboot.",
  ],
  danger: "Restarting the driver while its command still runs in the kernel may mount or map the volume twice.",
  links: [
    "ceph/ceph-csi#911",
    "ceph/ceph-csi#1062",
    "ceph/ceph-csi#1820",
    "rook/rook#4896",
    "rook/rook#15226",
    "rook/rook#11617",
  ],
};

export const volumeTeardownBusy: ClassDefinition = {
  id: "volume-teardown-busy",
  code: "V3",
  title: "A finished pod's volume cannot be unmounted",
  explanation:
    "The pod's containers are gone, but the kubelet cannot unmount one of its volumes: something on the node still uses the mount, its storage does not answer, or what the kubelet needs to know about the volume was lost. The pod stays Terminating, and the volume cannot move to another node.",
  mechanism:
    "kubelet unmounts each volume of a finished pod before it lets the pod go, and tries again with a growing pause. EBUSY means an open file or a copy of the mount in another mount namespace, ESTALE a dead NFS server, and a lost vol_data.json a crash.",
  signatures: () => [
    {
      text: 'UnmountVolume.TearDown failed for volume "<pv>" …: device or resource busy | target is busy | directory not empty | not mounted | stale NFS file handle',
      pattern:
        /unmount(?:volume\.(?:teardown|newunmounter)|device) failed for volume[^]{0,900}?(?:resource busy|target is busy|device is busy|directory not empty|not mounted|stale (?:nfs )?file handle|transport endpoint is not connected|still mounted by|input\/output error|exit status 32|deadline ?exceeded)/,
      confidence: 0.9,
    },
    {
      text: 'error cleaning subPath mounts for volume "<pv>" …',
      pattern: /error cleaning subpath mounts for volume/,
      confidence: 0.9,
    },
    {
      text: "UnmountVolume.NewUnmounter failed … failed to open volume data file [<path>/vol_data.json]: no such file or directory",
      pattern: /failed to (?:open|load) volume data file|unmounter failed to load volume data/,
      confidence: 0.85,
    },
    {
      text: "unmount failed: exit status 32 … umount: /var/lib/kubelet/pods/<uid>/volumes/…: target is busy",
      pattern:
        /umount: \/var\/lib\/kubelet\/(?:pods|plugins)\/\S{1,400}: (?:target is busy|device is busy|not mounted|stale file handle)|(?:remove|unlinkat|rmdir) \/var\/lib\/kubelet\/(?:pods|plugins)\/\S{1,400}: (?:device or resource busy|directory not empty)/,
      confidence: 0.85,
    },
  ],
  logFragments: [
    "unmountvolume.",
    "unmountdevice",
    "subpath mounts",
    "volume data file",
    "umount:",
    "/var/lib/kubelet/p",
  ],
  inSnapshot:
    "The API server is deleting the pod, its containers ended longer ago than --volume-attachment-age, and mounts are left below kubelet's directory of the pod, where nothing changed since. It takes a kubeconfig or a service account.",
  versions: {
    since: "every kubelet",
    until: "open",
    ends: "No upgrade; a restart of the kubelet was enough in one report, because it reads the mounts again.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Name who uses it: grep -l <pod's uid> /proc/[0-9]*/mountinfo, fuser -vm <path>.",
      "A process or container with a copy of the mount: restart that one.",
      "Storage that does not answer: bring it back; if it is gone for good, umount -l that path.",
      "“not mounted” or a lost vol_data.json: restart the kubelet once; what stays is an orphaned directory (V4).",
    ],
    gates: ["No container of the pod runs.", "The path lies below this pod's own directory."],
  },
  byHand: [
    "grep <uid> /proc/self/mountinfo, and grep -l <uid> /proc/[0-9]*/mountinfo for the holder.",
    "End the holder, then wait two minutes for the kubelet.",
  ],
  danger:
    "rm -r below a path that is still mounted deletes the data of the volume. A lazy unmount loses what was not written yet.",
  links: [
    "kubernetes/kubernetes#113426",
    "kubernetes/kubernetes#65110",
    "kubernetes/kubernetes#122342",
    "kubernetes/kubernetes#72048",
    "dell/csm#146",
    "longhorn/longhorn#2474",
  ],
  detect: (view) =>
    unchangedVolumes(view).flatMap(({ volumes, pod, quietMs }) => {
      if (pod === undefined || volumes.mounts.length === 0) return [];
      return [
        {
          severity: "critical",
          steps: [
            `See who uses ${volumes.mounts.length === 1 ? "it" : "them"}: grep -l ${volumes.uid} /proc/[0-9]*/mountinfo; fuser -vm ${volumes.mounts[0]}`,
            "Restart the process or container that has a copy of the mount, and bring storage back that does not answer; kubelet unmounts within two minutes.",
          ],
          subject: { type: "file", path: volumes.path },
          summary: `${count(volumes.mounts)} of the deleted pod ${pod.namespace}/${pod.name} ${volumes.mounts.length === 1 ? "is" : "are"} still mounted ${inWords(quietMs)} after its containers ended`,
          evidence: [...mountEvidence(volumes), { source: "kubernetes", fact: "the pod has a deletion timestamp" }],
          blocks: [`the deletion of pod ${pod.namespace}/${pod.name}`],
          blockedPods: namedPods([pod]),
        } satisfies Detected,
      ];
    }),
};

export const orphanedVolumesDirectory: ClassDefinition = {
  id: "orphaned-volumes-directory",
  code: "V4",
  title: "Directory of a pod that no longer exists",
  explanation:
    "The kubelet finds the directory of a pod that is gone and cannot remove it, because something is still mounted or was left in it. It tries again every two seconds and fills the log. Nothing waits for it, but a mount below it keeps a volume in use.",
  mechanism:
    "After a crash or a failed unmount /var/lib/kubelet/pods/<uid> stays behind. kubelet removes directories without mounts and without files only; it never deletes what may be a volume's data.",
  signatures: () => [
    {
      text: 'orphaned pod "<uid>" found, but failed to rmdir() volume at path <path>: directory not empty | not a directory | device or resource busy',
      pattern: /orphaned pod \S{1,60} found, but/,
      confidence: 0.95,
    },
    {
      text: 'Orphaned pod found, but volumes are not cleaned up podUID="<uid>" path="<path>"',
      pattern: /orphaned pod found, but/,
      confidence: 0.9,
    },
  ],
  logFragments: ["orphaned pod"],
  inSnapshot:
    "Kubelet's directory of a pod that neither the API server nor the runtime has, where nothing changed for longer than --volume-attachment-age while kubelet ran. It takes a kubeconfig or a service account.",
  versions: {
    since: "every kubelet; the wording with rmdir() since 1.19",
    until: "open",
    ends: "No upgrade: kubelet never deletes what may be the data of a volume.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Make sure that nothing is mounted below it: grep /var/lib/kubelet/pods/<uid> /proc/self/mountinfo; unmount what is.",
      "Inspect what is left: files in a volume's directory that is no mount were written while the volume was away.",
      "Move the directory of that uid away, or remove it with rm --one-file-system.",
    ],
    gates: ["The API has no pod of that UID on this node.", "No mount lies below the directory."],
  },
  byHand: [
    "kubectl get pods --all-namespaces -o jsonpath='{.items[*].metadata.uid}' | grep <uid> shows nothing.",
    "umount the paths below it, then rm --one-file-system -r /var/lib/kubelet/pods/<uid>.",
  ],
  danger: "rm -r without --one-file-system deletes the data of a volume that is still mounted there.",
  links: [
    "kubernetes/kubernetes#105536",
    "kubernetes/kubernetes#113987",
    "kubernetes/kubernetes#38498",
    "rancher/rke2#2083",
  ],
  detect: (view) =>
    unchangedVolumes(view).flatMap(({ volumes, pod, quietMs }) => {
      // A kubelet that has just started, or does not run, has not had the time to remove it.
      if (pod !== undefined || kubeletUpMs(view) < view.policy.volumeAttachmentAgeMs) return [];
      return [
        {
          severity: "warning",
          steps: [
            ...volumes.mounts.map((mount) => `Unmount what is left: umount ${mount}`),
            `Inspect what is below ${volumes.path}: files in a volume's directory that is no mount were written while the volume was away.`,
            `Move ${volumes.path} away, or remove it: rm --one-file-system -r ${volumes.path}`,
          ],
          subject: { type: "file", path: volumes.path },
          summary: `kubelet's directory of a pod that no longer exists is left, unchanged for ${inWords(quietMs)}${volumes.mounts.length === 0 ? "" : `, with ${count(volumes.mounts)} mounted`}`,
          evidence: [
            ...mountEvidence(volumes),
            { source: "kubernetes", fact: `the API server has no pod with the uid ${volumes.uid} on this node` },
            { source: "cri", fact: "the runtime lists no sandbox of it" },
          ],
        } satisfies Detected,
      ];
    }),
};

interface Unchanged {
  readonly volumes: PodVolumes;
  /** Missing if the API server does not have it. */
  readonly pod?: KnownPod;
  readonly quietMs: number;
}

/** Directories of pods that have ended, in which kubelet has changed nothing for longer than a volume may wait. */
function unchangedVolumes(view: NodeView): readonly Unchanged[] {
  const { kubernetes, observedAt, podVolumes, cri } = view.snapshot;
  const found = podVolumes?.status === "read" ? podVolumes.value : [];
  if (kubernetes.source !== "api" || cri.status !== "read" || cri.value.sandboxesIncomplete === true) return [];
  const { containers } = cri.value;
  return found.flatMap((volumes) => {
    const pod = kubernetes.pods.find(({ uid }) => uid === volumes.uid);
    const sandboxes = view.sandboxesOfPod.get(volumes.uid) ?? [];
    if (sandboxes.some(({ state }) => state === "ready")) return [];
    // While the runtime has a sandbox of a pod that is gone, kubelet is still removing that.
    if (pod === undefined && sandboxes.length > 0) return [];
    if (pod !== undefined && isHeldInCluster({ uid: volumes.uid, namespace: pod.namespace ?? "" }, view)) return [];
    const own = containers.filter(({ labels }) => labels[POD_UID] === volumes.uid);
    const ends = own.map(({ exit }) => (exit === undefined ? undefined : Number(exit.finishedAt / 1_000_000n)));
    // A container that runs, or whose end is unknown, may use the volume.
    if (ends.includes(undefined)) return [];
    // Without a container the end of the pod is unknown: only kubelet's report shows that it fails.
    if (pod !== undefined && own.length === 0 && !isReported(volumes, view)) return [];
    const since = Math.max(volumes.changedAt.getTime(), ...ends.filter((end) => end !== undefined));
    const quietMs = observedAt.getTime() - since;
    return quietMs >= view.policy.volumeAttachmentAgeMs ? [{ volumes, pod, quietMs }] : [];
  });
}

const POD_UID = "io.kubernetes.pod.uid";
const UNMOUNT_FAILED = /unmountvolume|unmounter|subpath mounts/i;

function isReported({ uid }: PodVolumes, { snapshot }: NodeView): boolean {
  const lines = valueOr(snapshot.logs, undefined)?.lines ?? [];
  return lines.some(({ text }) => text.includes(uid) && UNMOUNT_FAILED.test(text));
}

const MAX_SHOWN = 3;

function mountEvidence({ path, mounts }: PodVolumes): Detected["evidence"] {
  if (mounts.length === 0) return [{ source: "processes", fact: `nothing is mounted below ${path}` }];
  const more = mounts.length > MAX_SHOWN ? ` and ${mounts.length - MAX_SHOWN} more` : "";
  return [{ source: "processes", fact: `mounted on the node: ${mounts.slice(0, MAX_SHOWN).join(", ")}${more}` }];
}

function count(mounts: readonly string[]): string {
  return mounts.length === 1 ? "a volume" : `${mounts.length} volumes`;
}

function inWords(milliseconds: number): string {
  return durationInWords(Math.floor(milliseconds / 1000));
}
