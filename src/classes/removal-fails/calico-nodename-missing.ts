import type { FailureClass } from "../failure-class.ts";

export const calicoNodenameMissing: FailureClass = {
  id: "calico-nodename-missing",
  code: "B10",
  category: "removal-fails",
  sharedCause: true,
  title: "calico-node is not running on this node",
  explanation:
    "Calico's plugin reads the node's name from a file that calico-node writes when it starts. The file is not there, so calico-node has not come up since the last boot. Pods can neither start nor go until it does.",
  mechanism:
    "The plugin stats /var/lib/calico/nodename unless it is marked optional. With the network namespace gone go-cni turns this very text into success; with it still there the removal loops.",
  signatures: () => [
    {
      text: "stat /var/lib/calico/nodename: no such file or directory: check that the calico/node container is running and has mounted /var/lib/calico/",
      pattern: /\/var\/lib\/calico\/nodename|check that the calico\/node container is running/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["calico"],
  inSnapshot: {
    visible: false,
    why: "The file lies outside what a snapshot reads; the plugin's error in the logs names it.",
  },
  versions: "Calico 3.x.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Get calico-node running on this node.", "The kubelet's retry finishes the rest."],
    gates: [],
  },
  byHand: ["kubectl -n calico-system (or kube-system) get pods -o wide: repair the calico-node pod of this node."],
  danger: "Writing the file by hand with a wrong name gives endpoints to the wrong node.",
  links: [
    "https://github.com/projectcalico/calico/issues/1795",
    "https://github.com/projectcalico/calico/issues/6309",
    "https://github.com/kubesphere/kubekey/issues/2504",
  ],
};
