import type { FailureClass } from "../failure-class.ts";

export const netnsBusy: FailureClass = {
  id: "netns-busy",
  code: "B19",
  category: "removal-fails",
  title: "The network namespace is still mounted somewhere",
  explanation:
    "The pod's network namespace cannot be removed because another container on the node still holds a copy of the mount, usually a storage driver that mounts /run or /var/run of the host. Restarting that container lets go of it.",
  mechanism:
    "The namespace file is a bind mount. It was propagated into another mount namespace, so the unlink in the host's answers EBUSY, and stop, remove or even status of the sandbox fail.",
  signatures: () => [
    {
      text: "failed to check network namespace closed: remove netns: unlinkat <path>: device or resource busy",
      pattern: /check network namespace closed|remove netns: (?:unlinkat|remove) /,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'sandbox network namespace "<path>" is not fully closed',
      pattern: /network namespace \S{1,200} is not fully closed/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'failed to remove network namespace for sandbox "<id>": …',
      pattern: /failed to remove network namespace|failed to unmount ns: at \S{0,100}netns/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "/var/run/netns/cni-<uuid>: device or resource busy",
      pattern: /\/netns\/\S{1,80}: device or resource busy/,
      level: "cause",
      confidence: 0.9,
    },
  ],
  logFragments: ["netns", "sandbox"],
  inSnapshot: {
    visible: false,
    why: "Mount tables of other processes are not searched yet; the error in the logs names the path.",
  },
  versions: "Seen with containerd 1.2 to 1.4; the code is unchanged on main.",
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
  links: [
    "https://github.com/containerd/containerd/issues/3667",
    "https://github.com/containerd/containerd/issues/6143",
    "https://github.com/containernetworking/plugins/issues/561",
  ],
};
