import type { FailureClass } from "../failure-class.ts";

export const shimLost: FailureClass = {
  id: "shim-lost",
  code: "B21",
  category: "removal-fails",
  title: "The sandbox lost its shim",
  explanation:
    "The shim, the process between the runtime and the pod, is gone, while the runtime still lists the pod as running. Every request to stop it ends at a closed connection. A restart of the runtime sets it NotReady.",
  mechanism:
    "The shim died or its socket vanished while CRI holds the sandbox Ready or Unknown. containerd 2.2 and later retries the stop three times; recovery at start sets the sandbox NotReady.",
  signatures: () => [
    { text: "ttrpc: closed", pattern: /ttrpc: (?:server )?closed/, level: "cause", confidence: 0.85 },
    {
      text: "failed to get sandbox container: … / failed to get pod sandbox container: …",
      pattern: /failed to get (?:pod )?sandbox container(?: task)?:/,
      level: "cause",
      confidence: 0.8,
    },
    {
      text: "runc did not terminate sucessfully: container does not exist",
      pattern: /runc did not terminate suc{1,2}es{1,2}fully[^]{0,120}?container does not exist/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "failed to query controller status: …",
      pattern: /failed to query controller status/,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "dial unix …/containerd-shim/….sock: connect: connection refused",
      pattern:
        /containerd-shim\/\S{0,200}: connect: (?:connection refused|no such file)|s\/[0-9a-f]{64}: connect: (?:connection refused|no such file)/,
      level: "cause",
      confidence: 0.85,
    },
  ],
  logFragments: ["sandbox", "runc did not", "controller status", "shim", "ttrpc", "dial unix"],
  inSnapshot: {
    visible: false,
    why: "Not detected yet. It would show as a sandbox that CRI calls Ready with no shim carrying its id.",
  },
  versions: "All; containerd 2.2.0 and later retries.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Restart the runtime once, under its gates; recovery sets the sandbox NotReady.", "Stop and remove it."],
    gates: ["No shim and no first process of the sandbox lives.", "No duplicate names among the records."],
  },
  byHand: ["Restart containerd (k3s, rke2-*), then crictl rmp <id>."],
  danger: "A container without a shim may still run. Kill by pid only when cgroup and id match.",
  links: [
    "https://github.com/containerd/containerd/issues/4016",
    "https://github.com/containerd/containerd/issues/8285",
    "https://github.com/containerd/containerd/issues/13692",
    "https://github.com/containerd/containerd/pull/9611",
  ],
};
