import type { FailureClass } from "../failure-class.ts";

export const delNeverExecuted: FailureClass = {
  id: "del-never-executed",
  code: "C4",
  category: "leak",
  title: "Teardown reported, but never executed",
  explanation:
    "The runtime died after the network was set up and before it had written that down. Later it reports the network as torn down although no plugin was ever called, and the address stays allocated.",
  mechanism: "With no result recorded these releases skip CNI DEL entirely and log success.",
  signatures: () => [],
  logFragments: [],
  inSnapshot: {
    visible: false,
    why: "It shows only through what it leaves, which is found as C1.",
  },
  versions: "containerd 1.6.37+, 1.7.23 to 1.7.30, 2.0.0 to 2.0.7, 2.1.0 to 2.1.6, 2.2.0 and 2.2.1.",
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["The address left behind is found and freed as C1."],
    gates: ["As in C1."],
  },
  byHand: ["Upgrade containerd to 1.7.31, 2.0.8, 2.1.7 or 2.2.2, then free the addresses as in C1."],
  danger: "As in C1: wiping the directory while pods run hands addresses out twice.",
  links: ["https://github.com/containerd/containerd/pull/12923"],
};
