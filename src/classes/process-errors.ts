import { isOptedOut } from "../evidence/candidates.ts";
import type { Detected } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { runtimeUnreachable } from "../logs/context.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const netnsBusy: ClassDefinition = {
  id: "netns-busy",
  code: "B19",
  title: "The network namespace is still mounted somewhere",
  explanation:
    "The pod's network namespace cannot be removed because another container on the node still holds a copy of the mount, usually a storage driver that mounts /run or /var/run of the host. Restarting that container lets go of it.",
  mechanism:
    "The namespace file is a bind mount. It was propagated into another mount namespace, so the unlink in the host's answers EBUSY, and stop, remove or even status of the sandbox fail.",
  signatures: () => [
    {
      text: "failed to check network namespace closed: remove netns: unlinkat <path>: device or resource busy",
      pattern: /check network namespace closed|remove netns: (?:unlinkat|remove) /,
      confidence: 0.95,
    },
    {
      text: 'sandbox network namespace "<path>" is not fully closed',
      pattern: /network namespace \S{1,200} is not fully closed/,
      confidence: 0.95,
    },
    {
      text: 'failed to remove network namespace for sandbox "<id>": …',
      pattern: /failed to remove network namespace|failed to unmount ns: at \S{0,100}netns/,
      confidence: 0.85,
    },
    {
      text: "/var/run/netns/cni-<uuid>: device or resource busy",
      // Namespaces of other programs have other names.
      pattern: /\/netns\/(?:cni-\S{1,80}|[0-9a-f]{8}-\S{1,80}|[<x*]\S{1,80}): device or resource busy/,
      confidence: 0.9,
    },
  ],
  logFragments: ["netns", "sandbox"],
  inSnapshot: "Mount tables of other processes are not searched yet; the error in the logs names the path.",
  versions: {
    since: "containerd 1.2",
    until: "open",
    ends: "No upgrade: the code on main is unchanged. Pods that mount /run or /var/run with HostToContainer propagation let go of the namespace.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Name the process, and its pod, whose mount table holds the namespace.",
      "Restart that pod; then stop and remove the sandbox.",
    ],
    gates: ["The sandbox is dead.", "No process lives in the namespace."],
  },
  byHand: ["grep -l <netns file> /proc/[0-9]*/mountinfo: restart the holder, then crictl rmp <id>."],
  danger: "ip netns delete on the namespace of a running pod cuts its network.",
  links: ["containerd/containerd#3667", "containerd/containerd#6143", "containernetworking/plugins#561"],
};

export const containerUnkillable: ClassDefinition = {
  id: "container-unkillable",
  code: "B20",
  title: "A container that does not die",
  explanation:
    "The runtime sent the kill and waits for the container's end, which never comes: the process hangs in the kernel, is a zombie or frozen, or its end was missed. The pod stays Terminating.",
  mechanism:
    "StopContainer waits for an exit event. An uninterruptible process, a frozen cgroup or a lost event leaves it waiting until the deadline, every time.",
  signatures: () => [
    {
      text: 'an error occurs during waiting for container "<id>" to be killed: wait container "<id>": context deadline exceeded',
      pattern:
        /an error occurs during waiting for container \S{1,90} (?:init process )?to be (?:killed|stopped)|wait container \S{1,90}:? (?:context (?:deadline|cancel)|stop timeout)/,
      confidence: 0.95,
    },
    {
      text: 'failed to stop sandbox container "<id>" in "SANDBOX_READY" state: wait sandbox container …',
      pattern:
        /failed to stop sandbox container \S{1,90} in \S{1,30} state: (?:wait|context|failed to kill [^]{0,120}?(?:deadline|canceled))|wait sandbox container \S/,
      confidence: 0.9,
    },
    {
      text: "tried to kill container, but did not receive an exit event",
      pattern: /did not receive an exit event/,
      confidence: 0.9,
    },
    {
      text: "StopContainer from runtime service failed … DeadlineExceeded / KillContainerError: … DeadlineExceeded",
      pattern:
        /(?:stopcontainer|killcontainer|kill container failed|container termination failed)[^]{0,300}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.6,
      decides:
        "The state of the container's first process: gone (the exit was missed), D (kernel or storage), T or frozen cgroup.",
    },
    {
      text: 'failed to "KillPodSandbox" … DeadlineExceeded',
      pattern: /(?:killpodsandbox|stoppodsandbox)[^]{0,400}?deadline ?exceeded/,
      unless: runtimeUnreachable,
      level: "symptom",
      confidence: 0.25,
      decides: "A container of the sandbox is still running, or its pause process does not end.",
    },
    {
      text: 'failed to kill container "<id>": … context deadline exceeded',
      pattern: /failed to kill (?:container|sandbox container|task)[^]{0,160}?(?:deadline exceeded|context canceled)/,
      confidence: 0.8,
    },
  ],
  logFragments: [
    "kill container",
    "sandbox",
    "to be killed",
    "stopcontainer",
    "killcontainer",
    "wait container",
    "container termination",
    "kill task",
  ],
  inSnapshot:
    "Not detected yet. It would show as a running container whose process is gone or in uninterruptible sleep.",
  versions: {
    since: "containerd 1.1",
    until: "open",
    ends: "Upgrade containerd to 2.0.6, 2.1.0 or later for the missed exit (pull requests 11741 and 11735), gVisor to a release after August 2026. A process in uninterruptible sleep ends with its storage alone.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Process gone, task still “running”: restart the runtime once, under its gates.",
      "Process in uninterruptible sleep: find the storage or reboot.",
      "Frozen cgroup: thaw it.",
    ],
    gates: ["No duplicate names among the records before a restart.", "Enough free disk."],
  },
  byHand: ["Find the pid (crictl inspect), check its state in /proc/<pid>/status, then restart the runtime or reboot."],
  danger: "Never remove the record while the process lives: it would go on writing to its volume unseen.",
  links: [
    "containerd/containerd#10755",
    "containerd/containerd#11133",
    "containerd/containerd#11984",
    "containerd/containerd#8102",
    "containerd/containerd/pull/11741",
    "containerd/containerd/pull/11735",
    "siderolabs/talos#9454",
    "moby/moby#37627",
  ],
};

export const shimLost: ClassDefinition = {
  id: "shim-lost",
  code: "B21",
  title: "The sandbox lost its shim or its pause process",
  explanation:
    "The shim, the process between the runtime and the pod, or the pod's pause process is gone, while the runtime still lists the pod as running. Requests to stop it end at a closed connection; new containers find no namespaces to join. A restart of the runtime sets the sandbox NotReady.",
  mechanism:
    "The shim died or its socket vanished, or the end of pause was missed, while CRI holds the sandbox Ready or Unknown. A container joins the namespaces of pause by its pid, which is then 0 or of no process. containerd 2.2 and later retries the stop three times; recovery at start sets the sandbox NotReady.",
  signatures: () => [
    {
      text: "ttrpc: closed",
      pattern: /ttrpc: (?:server )?closed/,
      unless: /nri \w{1,40} failed|nri plugin/,
      confidence: 0.85,
    },
    {
      text: "failed to get sandbox container: … / failed to get pod sandbox container: …",
      pattern: /failed to get (?:pod )?sandbox container(?: task)?:/,
      confidence: 0.8,
    },
    {
      text: "runc did not terminate sucessfully: container does not exist",
      pattern:
        /runc did not terminate suc{1,2}es{1,2}fully[^]{0,120}?container does not exist|delete --force \S{1,80} failed: (?:container (?:id )?[^]{0,90}?does not exist|error opening file \/run\/crun\/)/,
      confidence: 0.85,
    },
    { text: "failed to query controller status: …", pattern: /failed to query controller status/, confidence: 0.85 },
    {
      text: "dial unix …/containerd-shim/….sock: connect: connection refused",
      pattern:
        /containerd-shim\/\S{0,200}: connect: (?:connection refused|no such file)|s\/[0-9a-f]{64}: connect: (?:connection refused|no such file)/,
      confidence: 0.85,
    },
    {
      text: "runc create failed: unable to create new parent process: namespace path: lstat /proc/0/ns/ipc: no such file or directory",
      pattern:
        /lstat \/proc\/\d{1,8}\/ns\/(?:ipc|net|uts|pid|mnt|user|cgroup)(?:: | caused )[^]{0,80}?no such file or directory/,
      confidence: 0.9,
    },
    {
      text: "failed to start sandbox task / no running task found: task <id> not found",
      pattern: /no running task found[^]{0,120}?not found/,
      // Kubelet probes a container that has just ended.
      unless: /execsync|exec in container|prob(?:e|er)\b/,
      confidence: 0.8,
    },
    {
      text: 'sandbox container "<id>" is not running',
      pattern: /\bsandbox container \S{1,90} is not running/,
      confidence: 0.8,
    },
  ],
  logFragments: [
    "/ns/",
    "no running task",
    "sandbox",
    "runc did not",
    "controller status",
    "shim",
    "ttrpc",
    "dial unix",
  ],
  inSnapshot: "Not detected yet. It would show as a sandbox that CRI calls Ready with no shim carrying its id.",
  versions: {
    since: "every release",
    until: "open",
    ends: "containerd 2.2.0 and later retry, which helps where the shim died at its start.",
    note: "From 2.4 on a container in such a sandbox is refused with “is not running”.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Delete the pod, whose controller makes one with a new sandbox; if its removal fails too, go on.",
      "Restart the runtime once, under its gates; recovery sets the sandbox NotReady.",
      "Stop and remove it.",
    ],
    gates: ["No shim and no first process of the sandbox lives.", "No duplicate names among the records."],
  },
  byHand: ["Restart containerd (k3s, rke2-*), then crictl rmp <id>."],
  danger: "A container without a shim may still run. Kill by pid only when cgroup and id match.",
  links: [
    "containerd/containerd#4016",
    "containerd/containerd#9160",
    "containerd/containerd#7388",
    "containerd/containerd#8285",
    "containerd/containerd#13692",
    "containerd/containerd/pull/9611",
  ],
};

export const shimHangs: ClassDefinition = {
  id: "shim-hangs",
  code: "B32",
  title: "A shim runs, but does not answer",
  explanation:
    "The shim of a pod is there and accepts calls, but answers none. Whatever concerns this pod times out: stop, kill, exec and statistics. Because containerd asks the shims one after the other, lists of tasks and the kubelet's statistics become slow for the whole node.",
  mechanism:
    "The shim is stopped or frozen, holds a lock for a call that never ends, or waits for the kernel. containerd waits two seconds for the state of each shim when it lists tasks, and longer for each operation; a start of containerd may wait for it without end.",
  signatures: () => [
    {
      text: 'get state for <id> … error="context deadline exceeded: unknown"',
      pattern: /get state for \S{1,90}[^]{0,80}?(?:deadline exceeded|context canceled)/,
      confidence: 0.9,
    },
    {
      text: 'converting task to protobuf … error="context canceled: unknown"',
      pattern: /converting task to protobuf[^]{0,120}?(?:deadline exceeded|context canceled)/,
      confidence: 0.85,
    },
    {
      text: "ttrpc: received message on inactive stream",
      pattern: /received message on inactive stream/,
      level: "symptom",
      confidence: 0.5,
      decides: "It repeats, with “get state for <id>” beside it. Root may have no inotify instances left: B25.",
    },
  ],
  logFragments: ["get state for", "task to protobuf", "inactive stream"],
  inSnapshot:
    "The shim of a listed sandbox is stopped (state T), and containerd does not learn the state of its tasks. One that is busy or hangs in another state is reported as a problem of the source containerd: whether it ever answers is not known.",
  versions: {
    since: "every containerd release",
    until: "open",
    ends: "No upgrade ends the hang. A fix of 2026 (pull request 12821) reports the time-out instead of leaving the task out.",
    note: "containerd 1.x reports the state of such a task as unknown; 2.x may leave it out of a list.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Read the state of the shim: State in /proc/<shim>/status. T is stopped: kill -CONT <shim>. D waits for the kernel: repair the storage, or reboot.",
      "In state S for minutes: dump its stack with kill -USR1 <shim> for a report, then end the shim; containerd cleans up after it.",
    ],
    gates: [
      "The shim is this containerd's, and its id is the sandbox's.",
      "The pod may lose its containers: one shim serves all of them.",
    ],
  },
  byHand: [
    "timeout 5 ctr -n k8s.io tasks ls; ps -ef | grep containerd-shim | grep <id>",
    "grep State /proc/<shim>/status; kill -CONT <shim> if it is stopped.",
  ],
  danger: "Ending a shim leaves the containers behind it without supervision until containerd has cleaned up.",
  links: [
    "containerd/containerd#10092",
    "containerd/containerd#2438",
    "containerd/containerd#3440",
    "containerd/containerd#13848",
    "containerd/containerd/pull/12821",
  ],
  detect: detectStoppedShims,
};

function detectStoppedShims(view: NodeView): readonly Detected[] {
  const shims = valueOr(view.snapshot.processes, undefined)?.shims ?? [];
  const tasks = valueOr(view.snapshot.containerd, undefined)?.tasks ?? [];
  return shims.flatMap(({ id, pid, isStopped }) => {
    const { sandbox, containers } = view.about(id);
    if (isStopped !== true || sandbox === undefined || isOptedOut(sandbox, view)) return [];
    const ids = new Set<string>([id, ...containers.map((one) => one.id)]);
    const isAnswered = tasks.some(({ containerId, status }) => ids.has(containerId) && status !== "unanswered");
    if (isAnswered) return [];
    const { namespace, name } = sandbox.pod;
    return [
      {
        severity: "critical",
        steps: [
          `Let the stopped shim go on: kill -CONT ${pid}`,
          `If it hangs again, end it: kill -KILL ${pid}; containerd cleans up after it, and ${namespace}/${name} loses its containers.`,
        ],
        subject: { type: "process", pid, sandboxId: sandbox.id, pod: sandbox.pod },
        summary: `the shim of ${namespace}/${name} is stopped: the pod cannot be stopped, removed or inspected, and lists of tasks wait for it`,
        evidence: [
          { source: "processes", fact: `pid ${pid} is the shim of ${id}, in state T (stopped)` },
          { source: "containerd", fact: "containerd did not learn the state of its tasks" },
        ],
        blocks: [`pod ${namespace}/${name}`],
        blockedPods: [sandbox.pod],
      },
    ];
  });
}

export const sandboxFilesBusy: ClassDefinition = {
  id: "sandbox-files-busy",
  code: "B23",
  title: "The sandbox's directory is still mounted somewhere",
  explanation:
    "The sandbox itself is stopped, but its files cannot be removed because another container holds a copy of one of its mounts. The sandbox stays listed until that container lets go.",
  mechanism:
    "The shm or rootfs mount was propagated into another mount namespace; unmount or rmdir in the host's answers EBUSY or ENOTEMPTY.",
  signatures: () => [
    {
      text: "failed to cleanup sandbox files: …",
      pattern: /failed to (?:clean ?up|unmount) sandbox files|failed to cleanup image mounts for sandbox/,
      unless: /read-only file system|input\/output error|no space left/,
      confidence: 0.9,
    },
    {
      text: 'failed to remove sandbox root directory "<path>": … device or resource busy',
      pattern:
        /failed to remove (?:volatile )?sandbox root directory[^]{0,600}?(?:resource busy|not empty)|(?:sandbox|kubelet|pod)[^]{0,300}?unable to remove filesystem for [^]{0,300}?(?:resource busy|not empty)/,
      confidence: 0.9,
    },
    {
      text: "failed to remove bundle … directory not empty",
      pattern: /failed to remove bundle[^]{0,300}?(?:directory not empty|device or resource busy)/,
      confidence: 0.85,
    },
    {
      text: "failed to remove pod sandbox <id>: … userdata/shm: device or resource busy",
      pattern:
        /(?:\/sandboxes\/|userdata\/shm|\/overlay-containers\/)[^]{0,200}?(?:device or resource busy|directory not empty)/,
      within: /remov|delet|unmount|clean|stop/,
      confidence: 0.85,
    },
    {
      text: "unlinkat /run/containerd/io.containerd.runtime.v2.task/k8s.io/<id>/rootfs: device or resource busy",
      pattern: /runtime\.v[12]\.(?:task|linux)\/k8s\.io\/\S{1,160}: (?:device or resource busy|directory not empty)/,
      confidence: 0.8,
    },
  ],
  logFragments: ["resource busy", "remove bundle", "sandbox", "not empty", "userdata/shm", "overlay-containers"],
  inSnapshot: "Mount tables of other processes are not searched yet; the error in the logs names the path.",
  versions: {
    since: "every release",
    until: "open",
    ends: "No upgrade: exclude the runtime's directories from the agent that pins them.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Name the process, and its pod, that holds the mount.",
      "Restart that pod, or unmount lazily below the sandbox's own directory only.",
      "Remove the sandbox over CRI.",
    ],
    gates: ["The sandbox is dead.", "The path lies below this id's own directory."],
  },
  byHand: [
    "grep -l <id> /proc/[0-9]*/mountinfo: restart the holder, then crictl rmp <id>.",
    "CRI-O: a security agent of the node that runs podman pins mounts below /var/lib/containers (Falcon sensor 7.30 and later is in the reports).",
  ],
  danger: "An unmount outside the id's own directory hits running pods.",
  links: ["containerd/containerd#11376", "cri-o/cri-o#1453"],
};

export const vmRuntimeLeft: ClassDefinition = {
  id: "vm-runtime-left",
  code: "B24",
  title: "A virtual machine outlived its sandbox",
  explanation:
    "With kata or gVisor each pod is its own small machine. Its processes survived although the runtime has already forgotten the pod, and a new pod of the same name cannot be made beside them.",
  mechanism:
    "The runtime's create is not idempotent across a containerd restart; the machine's processes and its directory below /run/vc or the runsc root stay.",
  signatures: () => [
    {
      text: "/run/vc/…/<id>: file exists | device or resource busy",
      pattern:
        /\/(?:run|lib)\/vc\/\S{1,200}:? (?:file exists|device or resource busy|directory not empty|already exists)/,
      confidence: 0.8,
    },
    {
      text: "kata: sandbox <id> already exists / runsc: container with ID <id> already exists",
      pattern: /(?:kata|runsc|gvisor|virtcontainers)[^]{0,300}?already exists?\b/,
      within: /sandbox|container/,
      confidence: 0.7,
    },
  ],
  logFragments: ["kata", "resource busy", "runsc", "/vc/", "gvisor"],
  inSnapshot: "Processes of virtual machines are not distinguished from others yet.",
  versions: {
    since: "kata 2.4 in the reports",
    until: "open",
    ends: "No upgrade is known; possible with any VM-like runtime.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Name the processes and the directory that belong to the forgotten sandbox."],
    gates: ["The id is in neither the CRI list nor the runtime's records."],
  },
  byHand: ["End the processes that carry the sandbox id, then clean its directory below /run/vc."],
  danger: "The machine may still hold volumes and write to them.",
  links: [
    "kata-containers/kata-containers#5246",
    "kata-containers/kata-containers#1945",
    "google/gvisor#9011",
    "google/gvisor#9834",
    "containerd/containerd#10421",
  ],
};
