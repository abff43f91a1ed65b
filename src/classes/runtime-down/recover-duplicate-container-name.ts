import type { FailureClass } from "../failure-class.ts";

export const recoverDuplicateContainerName: FailureClass = {
  id: "recover-duplicate-container-name",
  code: "D2",
  category: "runtime-down",
  title: "The runtime does not start: two records of one container name",
  explanation:
    "containerd finds two containers with the same name in its database and does not start. This is a late consequence of a restart with a full disk (A6): one container was forgotten then, and the kubelet made a second.",
  mechanism: "As D1, for container names.",
  signatures: () => [
    {
      text: 'level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve container name …',
      pattern: /failed to recover state: failed to reserve container name/,
      level: "cause",
      confidence: 0.98,
    },
    {
      text: "failed to recover state: … (cut)",
      pattern: /failed to recover state/,
      unless: /larger than max/,
      level: "wrapper",
      confidence: 0.3,
      decides: "What follows: “reserve container name” is this class.",
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
      "Free disk space.",
      "Start the runtime with its CRI plugin switched off and remove the duplicate that has no task.",
      "Start it normally.",
    ],
    gates: ["Exactly one of the records has a live task, or none has."],
  },
  byHand: ["As D1, with ctr -n k8s.io c rm for the container record that has no task."],
  danger: "Both copies may be running and writing to one volume.",
  links: [
    "https://github.com/containerd/containerd/issues/7247",
    "https://github.com/containerd/containerd/issues/11504",
  ],
};
