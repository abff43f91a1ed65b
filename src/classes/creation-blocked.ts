import type { ClassDefinition } from "./failure-class.ts";

const decides =
  "Check the holder. Not listed and the disk busy: a slow create (this class), wait. Running and healthy: the clock stepped and the kubelet counts restarts wrongly (A4). Hours without end and threads in uninterruptible sleep on a mount: a dead volume (A8).";

export const containerNameHeldBySlowCreate: ClassDefinition = {
  id: "container-name-held-by-slow-create",
  code: "A2",
  title: "Container name held by a slow create",
  explanation:
    "The runtime is still busy creating this container, mostly unpacking a large image onto a slow disk. The kubelet timed out after two minutes and retried; the second request meets the name of the first. It mostly ends on its own within minutes; one that does not needs a restart of the runtime.",
  mechanism:
    "CreateContainer reserves the container's name first and prepares the snapshot after that. Under I/O pressure that takes longer than the kubelet's two-minute deadline; every retry fails on the name until the first request ends.",
  signatures: () => [
    {
      text: 'failed to reserve container name "<container>_<pod>_<namespace>_<uid>_<n>": name "<same>" is reserved for "<id>"',
      pattern: /failed to reserve container name/,
      level: "symptom",
      confidence: 0.7,
      decides,
    },
    {
      text: '… name "<container>_<pod>_<namespace>_<uid>_<n>" is reserved for "<id>" (the front cut off)',
      pattern: /\bname [^\s_]{1,63}_[^\s_]{1,253}_[^\s_]{1,63}_[^\s_]{1,40}_\d{1,9} is reserved for/,
      level: "symptom",
      confidence: 0.6,
      decides,
    },
  ],
  logFragments: ["reserve"],
  inSnapshot:
    "The holder is in flight and listed nowhere. The log line is the only trace, and it usually clears without intervention.",
  versions: {
    since: "every release",
    until: "open",
    ends: "No upgrade. A faster disk or smaller images prevent it.",
    note: "containerd 2.1.7, 2.2.2 and 2.3 add “check if another CreateContainer request is in progress”.",
  },
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["Watch for fifteen minutes; report I/O pressure and full disks."],
    gates: [],
  },
  byHand: [
    "Wait. Check I/O pressure (/proc/pressure/io) and free space.",
    "If it lasts longer than a quarter of an hour, delete the pod; its controller makes one with a new name.",
    "If that does not help, and nothing waits for the disk any more, restart the runtime (systemctl restart containerd, or k3s): the names that only its memory holds are free then. Check for duplicate names (D1, D2) and free disk space first.",
    "Give the node a faster disk, or make the image smaller.",
  ],
  danger: "Removing the “stale” id kills a create that was about to succeed.",
  links: [
    "containerd/containerd#4604",
    "containerd/containerd#9113",
    "k3s-io/k3s#2312",
    "k3s-io/k3s#7690",
    "k3s-io/k3s#13652",
  ],
};

export const clockStepContainerRestartcount: ClassDefinition = {
  id: "clock-step-container-restartcount",
  code: "A4",
  title: "Clock step made the kubelet reuse a restart count",
  explanation:
    "The kubelet tries to start a container that is already running: after a clock step it reads an outdated status and asks for a restart number that is taken. The pod shows CreateContainerError although its container works.",
  mechanism:
    "The kubelet keeps container statuses by creation time; after a backward step a stale one wins and the restart count is computed from it. The name that results belongs to a container that is often alive.",
  signatures: () => [
    {
      text: 'failed to reserve container name "…": name "…" is reserved for "<id>", and <id> runs',
      pattern: /failed to reserve container name/,
      level: "symptom",
      confidence: 0.15,
      decides:
        "crictl inspect of the holder: it exists and is running, or exited long ago, while the kubelet reports CreateContainerError.",
    },
    {
      text: 'Conflict. The container name "/k8s_<container>_…" is already in use by container "<id>", and <id> runs',
      pattern: /container name \/?k8s_(?!pod_)\S{1,400} is already in use by container/,
      decides: "The holder runs, and the clock stepped: this class. The holder is a dead one from before a crash: O4.",
      confidence: 0.3,
    },
  ],
  logFragments: ["container name"],
  inSnapshot:
    "Not detected yet. It would show as a second container of the same pod, name and restart count, with creation times out of order.",
  versions: {
    since: "every kubelet",
    until: "open",
    ends: "No upgrade: the change is not merged. A clock that is right before the kubelet starts prevents it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Holder created or exited, older than ten minutes: remove that container.",
      "Holder running: restart the kubelet only.",
    ],
    gates: ["The holder does not run.", "It is no static control-plane pod."],
  },
  byHand: [
    "Inspect the holder: crictl inspect <id>.",
    "Running: restart the kubelet and touch nothing else. Never started: crictl rm <id>.",
  ],
  danger: "The holder may be the live container of a control-plane pod; removing it takes the API server down.",
  links: [
    "kubernetes/kubernetes#134153",
    "kubernetes/kubernetes#90298",
    "kubernetes/kubernetes#94557",
    "kubernetes/kubernetes/pull/138191",
    "Faisal-Hajari/ai-platform#21",
    "cri-o/cri-o#8629",
  ],
};

export const containerInvisibleAfterEnospcRestart: ClassDefinition = {
  id: "container-invisible-after-enospc-restart",
  code: "A6",
  title: "Container forgotten because the disk was full at restart",
  explanation:
    "containerd was restarted while its disk was full. It could not write down the state of some containers and left them out, although they still run. The kubelet cannot see them and starts a second copy. The next restart of containerd will find both and refuse to start.",
  mechanism:
    "On start the CRI plugin loads each container and checkpoints its status. A failing write skips the container: the process keeps running unknown to CRI, and the kubelet creates one with the same name. Recovery treats two equal names as fatal (D2).",
  signatures: () => [
    {
      text: 'Failed to load container "<id>" … failed to checkpoint status to "<path>": … no space left on device',
      pattern: /failed to checkpoint status/,
      confidence: 0.9,
    },
    {
      text: 'Failed to load container "<id>": … no space left on device',
      pattern: /failed to load (?:container|sandbox)[^]{0,400}?no space left on device/,
      confidence: 0.85,
    },
  ],
  logFragments: ["load container", "sandbox", "checkpoint status"],
  inSnapshot:
    "Not distinguished yet: a running container that CRI does not list is reported as S2, whatever made it so.",
  versions: {
    since: "every containerd release",
    until: "open",
    ends: "No upgrade: main has it. Free disk space before containerd is restarted.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Free disk space.",
      "Restart containerd once, before the kubelet makes duplicates, if no duplicate names exist yet.",
      "With duplicates present: no restart; remove the unused copy first.",
    ],
    gates: ["At least 1 GiB and 5 % free below the containerd root.", "No duplicate names among the records."],
  },
  byHand: [
    "Free space on the containerd root (crictl rmi --prune, old logs).",
    "Find the containers that ctr -n k8s.io tasks ls lists and crictl ps does not.",
    "Restart containerd only when no two records carry the same name.",
  ],
  danger: "Two copies of one container may be writing to the same volume.",
  links: ["containerd/containerd#7247", "containerd/containerd#11504"],
};

const blockedTask = {
  text: "INFO: task containerd:<pid> blocked for more than <n> seconds.",
  pattern: /task (?:containerd\S{0,12}|runc\S{0,16}|dockerd|crio|kubelet|k3s\S{0,12}):\d{1,8} blocked for more than/,
  level: "symptom",
  confidence: 0.5,
  decides:
    "The call trace that follows: copy_net_ns or cleanup_net is this class; nfs_, cifs_ or vfs_statx is a dead mount (A8); a file system or block layer function is a failing disk.",
} as const;

export const kernelNetnsHang: ClassDefinition = {
  id: "kernel-netns-hang",
  code: "A7",
  title: "The kernel hangs on network namespaces",
  explanation:
    "The kernel is stuck tearing down an old network namespace, and every new one waits behind it. No pod with its own network can start on this node, whatever is removed or restarted. Only a reboot helps.",
  mechanism:
    "Making a sandbox unshares a network namespace; the kernel holds a global lock while it cleans up another one that still has a reference (unregister_netdevice waits). Threads of the runtime sleep uninterruptibly in copy_net_ns.",
  signatures: () => [
    {
      text: "unregister_netdevice: waiting for <interface> to become free. Usage count = <n>",
      pattern: /unregister_netdevice: waiting for/,
      confidence: 0.95,
    },
    { text: "copy_net_ns+0x… in a kernel stack", pattern: /\bcopy_net_ns\b/, confidence: 0.9 },
    { text: "cleanup_net+0x… in a kernel stack", pattern: /\bcleanup_net\+0x/, confidence: 0.75 },
    blockedTask,
    {
      text: 'failed to reserve sandbox name "…": name "…" is reserved for "<id>", for every new pod',
      pattern: /failed to reserve sandbox name/,
      level: "symptom",
      confidence: 0.1,
      decides: "Every new pod fails, and /proc/<containerd>/task/*/stack shows copy_net_ns for minutes.",
    },
  ],
  logFragments: ["sandbox", "netdevice", "net_ns", "blocked for more than", "cleanup_net"],
  inSnapshot:
    "Not detected yet. It would show as threads of the runtime in uninterruptible sleep; until then the kernel log is the proof.",
  versions: {
    since: "Linux, any release",
    until: "open",
    ends: "A newer kernel; which one depends on the driver that holds the reference.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Cordon the node.", "Reboot it, by force if an orderly shutdown hangs too.", "Update the kernel."],
    gates: ["At least two runtime threads in copy_net_ns for more than five minutes."],
  },
  byHand: ["Cordon, then reboot. Nothing short of it helps.", "Update the kernel."],
  danger:
    "Sandbox surgery cannot help, and a restart of the runtime hangs as well, which takes the running pods' supervision away.",
  links: ["containerd/containerd#12438", "moby/moby#5618", "kubernetes/kubernetes#30363"],
};

export const containerCreateStatHang: ClassDefinition = {
  id: "container-create-stat-hang",
  code: "A8",
  title: "Container creation hangs on a dead volume",
  explanation:
    "A volume of this pod lies on storage that no longer answers (NFS, CIFS, a CSI mount). The runtime asks the kernel whether the path exists and never gets an answer; every retry then fails on the container's name.",
  mechanism:
    "While building the container's specification containerd calls stat on each mount source. On a dead network file system that call sleeps uninterruptibly and cannot be cancelled.",
  signatures: () => [
    {
      text: 'failed to generate container "<id>" spec: failed to apply OCI options: failed to stat "<volume path>": … stale NFS file handle | transport endpoint is not connected | host is down',
      pattern:
        /failed to (?:generate (?:container \S{1,90} )?spec|apply oci options)[^]{0,80}?: failed to stat|error (?:mounting|stat|checking path) [^]{0,300}?\/kubelet\/[^]{0,300}?(?:stale (?:nfs )?file handle|transport endpoint is not connected|host is down)/,
      unless: /no such file or directory|not a directory|permission denied|unmount/,
      confidence: 0.8,
    },
    {
      text: 'failed to reserve container name "…": name "…" is reserved for "<id>", for hours',
      pattern: /failed to reserve container name/,
      level: "symptom",
      confidence: 0.15,
      decides:
        "It lasts for hours, and a thread of containerd sleeps in stat on a mount (state D, stack with nfs, cifs or fuse).",
    },
    {
      text: "INFO: task containerd:<pid> blocked for more than <n> seconds.",
      pattern: /task containerd\S{0,12}:\d{1,8} blocked for more than/,
      level: "symptom",
      confidence: 0.3,
      decides: "The call trace that follows names nfs, cifs, ceph or fuse functions.",
    },
  ],
  logFragments: ["reserve", "failed to stat", "checking path", "blocked for more than"],
  inSnapshot:
    "The create is in flight and listed nowhere; only a thread in uninterruptible sleep and the mount it waits for would show it.",
  versions: {
    since: "every containerd release",
    until: "open",
    ends: "No upgrade. Storage that answers, or soft mounts, prevent it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Bring the storage server back.", "If it is gone for good: unmount the dead path lazily."],
    gates: ["A thread of the runtime sleeps on exactly that mount."],
  },
  byHand: [
    "Find the mount: list processes in state D, and mounts on which df or stat hang.",
    "Restore the server, or umount -l the path when its data is not needed any more.",
  ],
  danger: "A lazy unmount loses what was not written yet. Restarting containerd does not help.",
  links: ["containerd/containerd#10828", "containerd/containerd#13867", "containerd/containerd#1722"],
};

export const eventedPlegStaleStatus: ClassDefinition = {
  id: "evented-pleg-stale-status",
  code: "A9",
  title: "EventedPLEG shows the kubelet an outdated pod",
  explanation:
    "Right after a restart of the runtime a kubelet with the EventedPLEG feature still uses an outdated status and tries to create a sandbox that exists. Mostly static pods are hit, so it is often the control plane.",
  mechanism:
    "With the feature gate on, the kubelet's pod cache is fed by runtime events; events lost over a runtime restart leave it stale. Suspected upstream, not proven.",
  signatures: () => [
    {
      text: "… is already in use by sandbox <id>",
      pattern: /conflict\. the name \S{1,400} is already in use by|is already in use by sandbox/,
      confidence: 0.3,
      decides:
        "The kubelet runs with the feature gate EventedPLEG and the pod is static: this class. The runtime is iSulad: O5.",
    },
    {
      text: 'failed to reserve sandbox name "…": name "…" is reserved for "<id>", for a static pod whose sandbox runs',
      pattern: /failed to reserve sandbox name/,
      level: "symptom",
      confidence: 0.05,
      decides: "The pod is static, the holder is listed, and the kubelet runs with EventedPLEG.",
    },
  ],
  logFragments: ["sandbox"],
  inSnapshot:
    "The kubelet's feature gates and its cache are not part of the node's state that can be read from outside.",
  versions: {
    since: "kubelets with the feature gate EventedPLEG on",
    until: "open",
    ends: "Switch the feature gate EventedPLEG off, which is the default.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Restart the kubelet once.", "Switch the feature gate off."],
    gates: ["The holder is left alone."],
  },
  byHand: ["Set EventedPLEG=false in the kubelet's feature gates and restart it."],
  danger: "The holder may be the live sandbox of the API server. Never remove it.",
  links: ["kubernetes/kubernetes#126514", "kubernetes/kubernetes#123139"],
};
