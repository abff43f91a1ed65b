import type { FailureClass } from "../failure-class.ts";

/** Found by diagnose/vicious-circle.ts: the cause of a loop is among the other findings. */
export const crashLoopDrivenByGhost: FailureClass = {
  id: "crash-loop-driven-by-ghost",
  code: "S4",
  category: "left-behind",
  title: "Pods that crash over and over because of a ghost",
  explanation:
    "Pods on this node start, miss something that a ghost keeps from running, and end again, every few seconds. That wears the node down, and a node that is worn down makes new ghosts. Nothing is wrong with these pods: heal what they wait for.",
  mechanism:
    "Each start makes namespaces, mounts and processes, and each end tears them down. Hundreds of those an hour load the kernel until it stalls; a stalled kernel makes plugins time out, and plugins that time out leave sandboxes behind.",
  signatures: () => [],
  logFragments: [],
  inSnapshot: {
    visible: true,
    how: "The runtime shows the third attempt or more of a container or a sandbox, made within the last ten minutes, and another finding names its pod as one that it keeps from working. RCU stalls and hung tasks in the kernel log are reported with it.",
  },
  versions: "All.",
  treatment: {
    mode: "none",
    reversible: false,
    steps: ["Heal the finding that it points to: the loop ends with its cause."],
    gates: [],
  },
  byHand: [
    "kubectl get pod -A --field-selector spec.nodeName=<node>: which restart, and what do they wait for?",
    "crictl pods --state NotReady: the ghost behind it; heal that one.",
    "dmesg | grep -e 'rcu.*stall' -e 'blocked for more than': has the kernel suffered already?",
  ],
  danger:
    "Deleting the crashing pods changes nothing while the ghost is there, and each new one adds to the load that makes ghosts.",
  links: [
    "https://github.com/containerd/containerd/issues/12438",
    "https://github.com/kubernetes/kubernetes/issues/97230",
  ],
};
