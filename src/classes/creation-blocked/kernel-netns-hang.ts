import type { FailureClass } from "../failure-class.ts";

const blockedTask = {
  text: "INFO: task containerd:<pid> blocked for more than <n> seconds.",
  pattern: /task (?:containerd\S{0,12}|runc\S{0,16}|dockerd|crio|kubelet|k3s\S{0,12}):\d{1,8} blocked for more than/,
  level: "symptom",
  confidence: 0.5,
  decides:
    "The call trace that follows: copy_net_ns or cleanup_net is this class; nfs_, cifs_ or vfs_statx is a dead mount (A8); a file system or block layer function is a failing disk.",
} as const;

export const kernelNetnsHang: FailureClass = {
  id: "kernel-netns-hang",
  code: "A7",
  category: "creation-blocked",
  title: "The kernel hangs on network namespaces",
  explanation:
    "The kernel is stuck tearing down an old network namespace, and every new one waits behind it. No pod with its own network can start on this node, whatever is removed or restarted. Only a reboot helps.",
  mechanism:
    "Making a sandbox unshares a network namespace; the kernel holds a global lock while it cleans up another one that still has a reference (unregister_netdevice waits). Threads of the runtime sleep uninterruptibly in copy_net_ns.",
  signatures: () => [
    {
      text: "unregister_netdevice: waiting for <interface> to become free. Usage count = <n>",
      pattern: /unregister_netdevice: waiting for/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "copy_net_ns+0x… in a kernel stack",
      pattern: /\bcopy_net_ns\b/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "cleanup_net+0x… in a kernel stack",
      pattern: /\bcleanup_net\+0x/,
      level: "cause",
      confidence: 0.75,
    },
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
  inSnapshot: {
    visible: false,
    why: "Not detected yet. It would show as threads of the runtime in uninterruptible sleep; until then the kernel log is the proof.",
  },
  versions: "A kernel defect; any runtime.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Cordon the node.", "Reboot it, by force if an orderly shutdown hangs too.", "Update the kernel."],
    gates: ["At least two runtime threads in copy_net_ns for more than five minutes."],
  },
  byHand: ["Cordon, then reboot. Nothing short of it helps.", "Update the kernel."],
  danger:
    "Sandbox surgery cannot help, and a restart of the runtime hangs as well, which takes the running pods' supervision away.",
  links: [
    "https://github.com/containerd/containerd/issues/12438",
    "https://github.com/moby/moby/issues/5618",
    "https://github.com/kubernetes/kubernetes/issues/30363",
  ],
};
