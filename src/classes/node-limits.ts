import type { Detected } from "../evidence/finding.ts";
import { freshErrors } from "../evidence/reports.ts";
import type { NodeView } from "../evidence/view.ts";
import { absent, valueOr } from "../host/source.ts";
import { printable } from "../host/text.ts";
import type { KernelFacts } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const inotifyInstancesExhausted: ClassDefinition = {
  id: "inotify-instances-exhausted",
  code: "B25",
  sharedCause: true,
  blocksEveryCall: true,
  title: "Root has no inotify instances left",
  explanation:
    "The kernel allows each user a fixed number of inotify instances, 128 by default, and root has used them up. Every container's shim needs one or two. Without them the runtime no longer learns that containers end, and stops, kills and removals on this node time out by the hundred. One sysctl ends it; the pods are not at fault.",
  mechanism:
    "On cgroup v2 a shim watches memory.events of its container by inotify. kubelet, cAdvisor, systemd and log collectors run as root as well and share the limit fs.inotify.max_user_instances, so it is reached with 50 to 100 containers. inotify_init then answers EMFILE, “too many open files”, although few files are open.",
  signatures: () => [
    {
      text: "error from *cgroupsv2.Manager.EventChan: failed to create inotify fd: too many open files",
      pattern: /failed to create inotify fd|failed to allocate directory watch: too many open files/,
      confidence: 0.97,
    },
    {
      text: "failed to watch oom events … too many open files / error creating fsnotify watcher: too many open files",
      pattern:
        /(?:inotify|fsnotify|file watcher|oom events|cgroupsv2\.manager)[^]{0,160}?(?:too many open files|no space left on device)/,
      confidence: 0.9,
    },
    {
      text: "inotify_init: too many open files / inotify_add_watch /sys/fs/cgroup/…: no space left on device",
      pattern: /inotify_(?:init1?|add_watch)\b[^]{0,300}?(?:too many open files|no space left on device)/,
      within: /kubelet|cadvisor|cgroup|container|crio|k3s|pod/,
      confidence: 0.9,
    },
  ],
  logFragments: ["inotify", "fsnotify", "oom events", "cgroupsv2.manager", "file watcher", "directory watch"],
  inSnapshot:
    "Processes of root hold as many inotify descriptors as fs.inotify.max_user_instances allows. They are counted where a sandbox is dead or the logs report a timeout or an exhausted limit.",
  versions: {
    since: "containerd 1.5, on cgroup v2",
    until: "open",
    ends: "Only the sysctl ends it: the limit is the kernel's. containerd 1.6.0 and later leak no instances.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Raise the limit at once: sysctl -w fs.inotify.max_user_instances=8192.",
      "Make it stay: a file below /etc/sysctl.d with fs.inotify.max_user_instances=8192.",
      "What hung meanwhile is retried by the kubelet; what still hangs a few minutes later is explained by its own error.",
    ],
    gates: [],
  },
  byHand: [
    "Count: find /proc/[0-9]*/fd -lname anon_inode:inotify | wc -l, and compare with sysctl fs.inotify.max_user_instances.",
    "sysctl -w fs.inotify.max_user_instances=8192, and the same line in /etc/sysctl.d/90-inotify.conf.",
    "If the message is “no space left on device”, the limit of watches is reached: raise fs.inotify.max_user_watches.",
  ],
  danger:
    "Killing shims to free instances takes the supervision from running containers; removing sandboxes frees none while their shims hang.",
  links: [
    "containerd/containerd#10468",
    "containerd/containerd#5670",
    "containerd/containerd/pull/11652",
    "containerd/cgroups#364",
    "k3s-io/k3s#10020",
  ],
  detect: detectInotify,
};

/** What the shim of one container needs. */
const NEEDED = 2;

function detectInotify({ snapshot }: NodeView): readonly Detected[] {
  const { inotify } = snapshot;
  if (inotify?.status !== "read" || inotify.value.used + NEEDED <= inotify.value.limit) return [];
  const { used, limit, holders } = inotify.value;
  const most = holders.map(({ name, count }) => `${name} ${count}`).join(", ");
  return [
    {
      severity: "critical",
      subject: { type: "node", path: "/proc/sys/fs/inotify/max_user_instances" },
      summary: `processes of root hold ${used} inotify instances, and fs.inotify.max_user_instances is ${limit}: shims get none, and stops, kills and removals time out`,
      evidence: [
        { source: "processes", fact: `${used} open inotify descriptors of root, the limit is ${limit}; most: ${most}` },
      ],
      blocks: ["new containers, and the end of running ones"],
      untreatable: "manual: sysctl -w fs.inotify.max_user_instances=8192, and the same line below /etc/sysctl.d",
    },
  ];
}

export const fileHandlesExhausted: ClassDefinition = {
  id: "file-handles-exhausted",
  code: "A11",
  sharedCause: true,
  title: "The runtime may open no more files",
  explanation:
    "containerd has reached its own limit of open files and can start no shim any more: every new container and every new sandbox on this node fails, while those that run go on.",
  mechanism:
    "Each container costs containerd several sockets and pipes. A service without LimitNOFILE=infinity (or a process started by hand, with 1024) reaches RLIMIT_NOFILE; fork, exec and open then answer EMFILE.",
  signatures: () => [
    {
      text: "failed to start shim: open /dev/null: too many open files",
      pattern: /failed to start shim[^]{0,300}?too many open files/,
      confidence: 0.95,
    },
    {
      text: "fork/exec /usr/bin/containerd-shim-runc-v2: too many open files",
      pattern: /(?:containerd-shim\S{0,20}|\/(?:runc|crun|conmon)|dev\/null|pipe2): too many open files/,
      confidence: 0.9,
    },
    {
      text: 'failed to create containerd task: … too many open files / failed to setup network for sandbox "<id>": … too many open files',
      pattern:
        /(?:failed to create (?:containerd|shim) task|(?:setup|set up|destroy) network for (?:pod )?sandbox|pod sandbox|accept unix|accept4)[^]{0,500}?too many open files/,
      within: /sandbox|containerd|crio|cri-o|kubelet|\bcri\b/,
      unless: /inotify|fsnotify|oom events/,
      confidence: 0.7,
    },
  ],
  logFragments: ["too many open files"],
  inSnapshot: "The runtime's limits and its open files are not read; the error in the logs is the proof.",
  versions: {
    since: "every release",
    until: "open",
    ends: "LimitNOFILE=infinity in the unit of containerd, which its own unit files have; units written by hand often lack it.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Compare ls /proc/<containerd>/fd | wc -l with “Max open files” in /proc/<containerd>/limits.",
      "Raise it for the running process: prlimit --pid <containerd> --nofile=1048576:1048576.",
      "Make it stay: LimitNOFILE=1048576 in a drop-in of the unit.",
    ],
    gates: [],
  },
  byHand: [
    "prlimit --pid $(pidof containerd) --nofile=1048576:1048576, then a drop-in with LimitNOFILE=1048576.",
    "If /proc/sys/fs/file-nr is near its third number, the whole machine is at its limit: raise fs.file-max.",
  ],
  danger: "A restart of the runtime with duplicate names among its records may not come back (D1, D2): check first.",
  links: ["containerd/cri#448"],
};

export const memoryCgroupsExhausted: ClassDefinition = {
  id: "memory-cgroups-exhausted",
  code: "A12",
  sharedCause: true,
  title: "The kernel has no memory cgroups left",
  explanation:
    "The kernel can create no further memory cgroup, so no new pod can start on this node, although disk and memory are free. Old kernels keep cgroups of containers that ended long ago.",
  mechanism:
    "cgroup v1 has 65,535 ids for memory cgroups. Kernels that leak them, mostly those before 4.18 with kernel memory accounting, run out after months of restarting containers; mkdir then answers ENOSPC.",
  signatures: () => [
    {
      text: "mkdir /sys/fs/cgroup/memory/kubepods/…: no space left on device",
      pattern: /mkdir \/sys\/fs\/cgroup\/\S{1,300}: no space left on device/,
      confidence: 0.95,
    },
    {
      text: "mkdir /sys/fs/cgroup/memory/…: cannot allocate memory",
      pattern: /mkdir \/sys\/fs\/cgroup\/\S{1,300}: cannot allocate memory/,
      confidence: 0.85,
    },
  ],
  logFragments: ["/sys/fs/cgroup"],
  inSnapshot: { conclusive: true, how: "Where a log has the error, the row “memory” of /proc/cgroups is near 65,535." },
  versions: {
    since: "cgroup v1",
    until: "Linux 4.17 for most leaks that are known",
    ends: "A newer kernel, or cgroup v2, which counts differently.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Drain the node and reboot it: that frees all ids.", "Update the kernel, or move to cgroup v2."],
    gates: [],
  },
  byHand: ["Read the row “memory” of /proc/cgroups.", "Drain and reboot; update the kernel."],
  danger: "Removing sandboxes frees no ids: the leaked cgroups have no directory any more.",
  links: ["moby/moby#29638", "kubernetes/kubernetes#61937"],
  detect: detectMemoryCgroups,
};

const MEMORY_CGROUP_IDS = 65_535;
/** The row counts hierarchies that are going at this moment, and not all that the kernel leaked. */
const NEARLY_ALL = 0.98;

function detectMemoryCgroups({ snapshot: { pointedAt } }: NodeView): readonly Detected[] {
  const count = pointedAt?.memoryCgroups ?? 0;
  if (count < MEMORY_CGROUP_IDS * NEARLY_ALL) return [];
  return [
    {
      severity: "critical",
      subject: { type: "node", path: "/proc/cgroups" },
      summary: `the kernel has ${count} of at most ${MEMORY_CGROUP_IDS} memory cgroups: no new pod can start`,
      evidence: [{ source: "kernel", fact: `/proc/cgroups: memory, ${count} cgroups` }],
      blocks: ["new pods"],
      untreatable: "manual: drain the node and reboot it, then update the kernel or move to cgroup v2",
    },
  ];
}

export const podCgroupBusy: ClassDefinition = {
  id: "pod-cgroup-busy",
  code: "B26",
  title: "A finished pod's cgroup cannot be removed",
  explanation:
    "The kubelet cannot delete the cgroup of a pod because a process is still in it: mostly one in uninterruptible sleep, or a half-started runc. The pod stays Terminating; a static pod of the same name waits for it.",
  mechanism:
    "A cgroup directory can be removed when no process and no child is left in it. kubelet removes it after the containers are gone, over systemd or by rmdir, and tries again with every sync of the pod.",
  signatures: () => [
    {
      text: "failed to delete cgroup paths for [kubepods burstable pod<uid>]: unable to destroy cgroup paths … Timed out while waiting for systemd to remove <slice>",
      pattern: /failed to delete cgroup paths|unable to destroy cgroup paths/,
      confidence: 0.9,
    },
    {
      text: "Failed to remove cgroup (will retry) … rmdir /sys/fs/cgroup/…: device or resource busy",
      pattern:
        /failed to remove cgroups?\b[^]{0,400}?(?:resource busy|timed out)|timed out while waiting for systemd to remove kubepods|rmdir \/sys\/fs\/cgroup\/\S{1,300}: device or resource busy/,
      within: /kubepods|kubelet|pod|cri-containerd|crio/,
      confidence: 0.9,
    },
  ],
  logFragments: ["cgroup", "kubepods"],
  inSnapshot: {
    conclusive: true,
    how: "Where a log has the error, the cgroup of a pod that the API server does not have is still there, with processes in it.",
  },
  versions: {
    since: "kubelet 1.20",
    until: "kubelet 1.32 with runc 1.2 in the reports",
    ends: "A newer runc and kernel; no release is named that ends it for certain.",
    note: "One line alone that does not repeat is ordinary: kubelet tries again.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Name the processes in the cgroup: find /sys/fs/cgroup -path '*pod<uid>*' -name cgroup.procs -exec cat {} +.",
      "In uninterruptible sleep (state D): repair the storage or the kernel's trouble behind it, or reboot.",
      "In no other state, and of no container that the runtime lists: end it; kubelet removes the cgroup then.",
    ],
    gates: ["The pod is gone from the API, or has another UID.", "The runtime lists no running container of the pod."],
  },
  byHand: [
    "Find the cgroup by the pod's uid (dots or underscores instead of dashes in a slice's name) and read cgroup.procs.",
    "If it is empty, search for child directories: crictl ps -a | grep <pod>.",
  ],
  danger: "A process in the cgroup may still write to the pod's volume.",
  links: [
    "kubernetes/kubernetes#123766",
    "kubernetes/kubernetes#97497",
    "kubernetes/kubernetes#112151",
    "kubernetes/kubernetes#128975",
    "kubernetes/kubernetes#109182",
  ],
  detect: detectPodCgroups,
};

const MAX_PIDS = 5;

function detectPodCgroups({ snapshot }: NodeView): readonly Detected[] {
  const { kubernetes, pointedAt } = snapshot;
  // Only the API server knows that a pod is gone.
  if (pointedAt === undefined || kubernetes.source !== "api") return [];
  const cri = valueOr(snapshot.cri, undefined);
  if (cri === undefined) return [];
  const alive = new Set<string>([
    ...kubernetes.pods.map(({ uid }) => uid),
    ...cri.sandboxes.flatMap(({ state, pod }) => (state === "ready" ? [pod.uid] : [])),
  ]);
  return pointedAt.podCgroups
    .filter(({ uid, pids }) => pids.length > 0 && !alive.has(uid))
    .map(({ uid, path, pids }): Detected => {
      const few = `${pids.slice(0, MAX_PIDS).join(", ")}${pids.length > MAX_PIDS ? " …" : ""}`;
      return {
        severity: "critical",
        subject: { type: "file", path },
        summary: `the cgroup of pod ${uid}, which the cluster does not have any more, still has ${pids.length} processes: ${few}`,
        evidence: [
          { source: "kernel", fact: `${path}: processes ${few}` },
          { source: "kubernetes", fact: `the API server has no pod ${uid}` },
        ],
        blocks: ["the removal of that pod's cgroup, and a static pod of the same name"],
        untreatable: `manual: check these processes (ps -o pid,stat,wchan,cmd -p ${pids.slice(0, MAX_PIDS).join(",")}): in state D the storage behind them hangs, in others end them`,
      };
    });
}

export const runcSignalDenied: ClassDefinition = {
  id: "runc-signal-denied",
  code: "B27",
  sharedCause: true,
  title: "AppArmor forbids runc to end containers",
  explanation:
    "The kernel refuses the signals with which runc ends a container: the distribution confines runc with an AppArmor profile, and the containers' own profile does not accept signals from it. No container on this node can be stopped, and pods stay Terminating.",
  mechanism:
    "AppArmor 4.0 (Ubuntu from 23.10 on) brings a profile that names /usr/sbin/runc. Containers run under cri-containerd.apparmor.d, which older runtimes generate without a rule for signals from the peer runc. kill answers EACCES, and every StopContainer and StopPodSandbox fails alike.",
  signatures: () => [
    {
      text: "runc did not terminate successfully: exit status 1: unable to signal init: permission denied",
      pattern:
        /unable to signal ?init: ?permission|signaling init process caused permission denied|(?:runc|crun|oci runtime)[^]{0,200}?\bkill\b[^]{0,60}?permission denied/,
      confidence: 0.97,
    },
    {
      text: 'audit: apparmor="DENIED" operation="signal" … comm="runc" … peer="runc"',
      pattern: /apparmor=denied operation=signal\b[^]{0,300}?(?:comm=(?:runc|crun|containerd-shim)|peer=\S{0,60}runc)/,
      confidence: 0.95,
    },
  ],
  logFragments: ["signal init", "signaling init", "apparmor"],
  inSnapshot:
    "The kernel's log has signals of runc that AppArmor refused, and a removal failed lately because a container could not be signalled.",
  versions: {
    since: "AppArmor 4.0 (Ubuntu 23.10)",
    until: "containerd 1.7.18",
    ends: "Upgrade containerd to 1.7.19 or 2.0, whose profile accepts signals from runc (pull request 10123).",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Upgrade containerd to a release whose profile accepts signals from runc, and restart it: running containers keep the old profile until it is loaded again.",
      "Until then: unload the profile of runc with apparmor_parser -R /etc/apparmor.d/runc (older: usr.sbin.runc), and keep it off by a link below /etc/apparmor.d/disable.",
    ],
    gates: ["The kernel log shows DENIED for the operation “signal” with runc as the peer."],
  },
  byHand: [
    'journalctl -k | grep \'apparmor="DENIED" operation="signal"\'',
    "ln -s /etc/apparmor.d/runc /etc/apparmor.d/disable/ && apparmor_parser -R /etc/apparmor.d/runc",
    "A runc outside the path that the profile names, such as /usr/bin/runc, is not confined.",
  ],
  danger: "Removing sandboxes by force while their processes live leaves programs that write to volumes unseen.",
  links: [
    "opencontainers/runc#4281",
    "containerd/containerd/pull/10123",
    "containerd/containerd#10542",
    "canonical/microk8s#1773",
    "moby/moby/pull/47749",
  ],
  detect: detectDeniedSignals,
};

function detectDeniedSignals(view: NodeView): readonly Detected[] {
  const denied = valueOr(view.snapshot.kernel ?? absent<KernelFacts>("not read"), undefined)?.signalsDenied;
  if (denied?.last === undefined) return [];
  if (freshErrors(view, /unable to signal init: permission denied/).length === 0) return [];
  return [
    {
      severity: "critical",
      subject: { type: "node", path: "/etc/apparmor.d" },
      summary: `AppArmor refused ${denied.count} signals of runc: no container on this node can be stopped`,
      evidence: [{ source: "kernel log", fact: printable(denied.last) }],
      blocks: ["the end of every container that does not end on its own"],
      untreatable:
        "manual: upgrade containerd to 1.7.19, 2.0 or later; until then unload the profile that confines runc (apparmor_parser -R)",
    },
  ];
}
