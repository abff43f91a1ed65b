import type { ClassDefinition } from "./failure-class.ts";

export const removalFailsUnknownCause: ClassDefinition = {
  id: "removal-fails-unknown-cause",
  code: "B33",
  title: "Removal fails, and unghost does not know the cause",
  explanation:
    "The runtime or kubelet reports that stopping this dead sandbox fails, and nothing in the catalogue has that error. The network plugin's own words are in the finding: they are all that is known.",
  mechanism:
    "StopPodSandbox calls CNI DEL of every plugin of the chain, and any of them can refuse. While one does, the runtime keeps the sandbox, its name and its addresses, and kubelet tries again.",
  inSnapshot:
    "A dead sandbox whose network is still held, and a report of the last five minutes that stopping or removing it failed, with an error that no other class has.",
  versions: { since: "every release of any runtime", until: "open", ends: "Unknown, like the cause." },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "Stop the sandbox over CRI: the runtime calls the plugin again.",
      "If that succeeds, remove it where its pod is gone or it was never created.",
    ],
    gates: ["The sandbox is dead: NotReady, no container running, no task, no shim."],
  },
  byHand: [
    "Read the plugin's answer in the finding, then the log of that plugin's own daemon on this node at the same time.",
    "Check the plugin's configuration in the CNI directory: it must be what the daemon expects.",
    "Search for the words of the answer together with the plugin's name; unghost explain proposes them.",
  ],
  danger:
    "Do not remove the plugin's configuration or the sandbox's namespace to get past it: what the plugin had allocated stays allocated.",
  links: ["containerd/containerd#6565", "containerd/containerd#8774"],
  adopts: "unknown-causes",
};
