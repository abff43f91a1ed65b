import type { FailureClass } from "../failure-class.ts";

export const containerInvisibleAfterEnospcRestart: FailureClass = {
  id: "container-invisible-after-enospc-restart",
  code: "A6",
  category: "creation-blocked",
  title: "Container forgotten because the disk was full at restart",
  explanation:
    "containerd was restarted while its disk was full. It could not write down the state of some containers and left them out, although they still run. The kubelet cannot see them and starts a second copy. The next restart of containerd will find both and refuse to start.",
  mechanism:
    "On start the CRI plugin loads each container and checkpoints its status. A failing write skips the container: the process keeps running unknown to CRI, and the kubelet creates one with the same name. Recovery treats two equal names as fatal (D2).",
  signatures: () => [
    {
      text: 'Failed to load container "<id>" … failed to checkpoint status to "<path>": … no space left on device',
      pattern: /failed to checkpoint status/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: 'Failed to load container "<id>": … no space left on device',
      pattern: /failed to load (?:container|sandbox)[^]{0,400}?no space left on device/,
      level: "cause",
      confidence: 0.85,
    },
  ],
  logFragments: ["load container", "sandbox", "checkpoint status"],
  inSnapshot: {
    visible: false,
    why: "Not distinguished yet: a running container that CRI does not list is reported as S2, whatever made it so.",
  },
  versions: "All containerd releases, main included.",
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
  links: [
    "https://github.com/containerd/containerd/issues/7247",
    "https://github.com/containerd/containerd/issues/11504",
  ],
};
