import type { FailureClass } from "../failure-class.ts";

export const delSwallowed: FailureClass = {
  id: "del-swallowed",
  code: "C5",
  category: "leak",
  title: "A failed DEL was reported as success",
  explanation:
    "The plugin failed to take the network down, but a caller in between reported success. The pod is removed, and what the plugin held, mostly an address, stays.",
  mechanism:
    "The multus shim from 4.0.2 always returns success on DEL. go-cni takes any error with “not found”, and “no such file or directory” with an empty namespace path, for success.",
  signatures: () => [
    {
      text: "CmdDel (shim): <error>",
      pattern: /cmddel \(shim\):/,
      level: "wrapper",
      confidence: 0.75,
    },
    {
      text: "CmdCheck (shim): <error> (multus 4.0.2 prints this on DEL)",
      pattern: /cmdcheck \(shim\):/,
      level: "wrapper",
      confidence: 0.6,
    },
  ],
  logFragments: ["shim"],
  inSnapshot: {
    visible: false,
    why: "It shows only through what it leaves, which is found as C1.",
  },
  versions: "multus shim 4.0.2 and later; go-cni, all versions.",
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["The address left behind is found and freed as C1."],
    gates: ["As in C1."],
  },
  byHand: ["Free the address in host-local or whereabouts by hand."],
  danger: "None beyond those of C1.",
  links: [
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1239",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/891",
    "https://github.com/k8snetworkplumbingwg/multus-cni/pull/1084",
  ],
};
