import type { FailureClass } from "../failure-class.ts";

export const retainedNotready: FailureClass = {
  id: "retained-notready",
  code: "N1",
  category: "not-a-failure",
  title: "NotReady, and kept on purpose",
  explanation:
    "After a reboot every pod shows an old NotReady sandbox beside the Ready one, and a finished pod keeps its last. The kubelet keeps them for their logs. Nothing is wrong.",
  mechanism:
    "The kubelet's garbage collection keeps the newest sandbox of every existing pod and any sandbox that still has containers.",
  signatures: () => [],
  logFragments: [],
  inSnapshot: {
    visible: true,
    how: "A NotReady sandbox of a finished pod, or one beside a Ready sandbox of the same pod with a higher attempt.",
  },
  versions: "All.",
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Leave it alone."],
  danger: "Removing it heals nothing and destroys kubectl logs and kubectl logs --previous.",
  links: ["https://github.com/containerd/containerd/issues/10865", "https://github.com/k3s-io/k3s/issues/11139"],
};
