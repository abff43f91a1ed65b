import type { FailureClass } from "../failure-class.ts";

export const recoverDuplicateSandboxName: FailureClass = {
  id: "recover-duplicate-sandbox-name",
  code: "D1",
  category: "runtime-down",
  title: "The runtime does not start: two records of one sandbox name",
  explanation:
    "containerd finds two sandboxes with the same name in its database, exits, and is restarted forever. Nothing runs on the node until one of the two records is gone. The usual advice, to move the whole directory away, also throws away all images.",
  mechanism: "Recovery reserves each stored name; a conflict is returned as an error and ends the process.",
  signatures: () => [
    {
      text: 'level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve sandbox name …',
      pattern: /failed to recover state: failed to reserve sandbox name/,
      level: "cause",
      confidence: 0.98,
    },
    {
      text: "failed to recover state: … (cut)",
      pattern: /failed to recover state/,
      unless: /larger than max/,
      level: "wrapper",
      confidence: 0.4,
      decides:
        "What follows: “reserve sandbox name” is this class, “reserve container name” D2, “get metadata for stored sandbox” D3.",
    },
  ],
  logFragments: ["recover state"],
  inSnapshot: {
    visible: false,
    why: "A runtime that does not run cannot be asked; `unghost scan --offline` reads its database instead and names it. While it still runs, the duplicates are found as C12.",
  },
  versions: "All containerd releases, main included.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Start the runtime with its CRI plugin switched off, on a private socket.",
      "Remove the duplicate that has no live shim.",
      "Start it normally.",
    ],
    gates: ["Exactly one of the records has a live shim, or none has."],
  },
  byHand: [
    "Disable the CRI plugin in containerd's configuration and start it.",
    "ctr -n k8s.io c ls / sandboxes ls: remove the duplicate without a task, then enable CRI again.",
  ],
  danger: "Wiping the root loses all images and orphans running containers; deleting only meta.db is worse.",
  links: [
    "https://github.com/containerd/containerd/issues/6095",
    "https://github.com/containerd/containerd/issues/13609",
    "https://github.com/containerd/cri/issues/1014",
    "https://github.com/k3s-io/k3s/issues/5189",
  ],
};
