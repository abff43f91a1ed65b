import type { FailureClass } from "../failure-class.ts";

const decides =
  "Check the holder. Not listed and the disk busy: a slow create (this class), wait. Running and healthy: the clock stepped and the kubelet counts restarts wrongly (A4). Hours without end and threads in uninterruptible sleep on a mount: a dead volume (A8).";

export const containerNameHeldBySlowCreate: FailureClass = {
  id: "container-name-held-by-slow-create",
  code: "A2",
  category: "creation-blocked",
  title: "Container name held by a slow create",
  explanation:
    "The runtime is still busy creating this container, mostly unpacking a large image onto a slow disk. The kubelet timed out after two minutes and retried; the second request meets the name of the first. It nearly always ends well on its own.",
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
  inSnapshot: {
    visible: false,
    why: "The holder is in flight and listed nowhere. The log line is the only trace, and it usually clears without intervention.",
  },
  versions:
    "All. Newer containerd (2.1.7+, 2.2.2+, 2.3) adds “check if another CreateContainer request is in progress”.",
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["Watch for fifteen minutes; report I/O pressure and full disks."],
    gates: [],
  },
  byHand: [
    "Wait. Check I/O pressure (/proc/pressure/io) and free space.",
    "If it lasts longer than a quarter of an hour, delete the pod; its controller makes one with a new name.",
    "Give the node a faster disk, or make the image smaller.",
  ],
  danger: "Removing the “stale” id kills a create that was about to succeed.",
  links: [
    "https://github.com/containerd/containerd/issues/4604",
    "https://github.com/containerd/containerd/issues/9113",
    "https://github.com/k3s-io/k3s/issues/2312",
    "https://github.com/k3s-io/k3s/issues/7690",
  ],
};
