import type { FailureClass } from "../failure-class.ts";

export const staleHostportRules: FailureClass = {
  id: "stale-hostport-rules",
  code: "C11",
  category: "leak",
  title: "Firewall rules of a dead pod swallow a host port",
  explanation:
    "Rules of a pod that is gone still send a host port to its old address. They stand before the new pod's rules, so connections to that port vanish.",
  mechanism:
    "Chain names are hashed from network name and id. After a lost DEL, or a renamed network, nothing removes them.",
  signatures: () => [
    {
      text: '-A CNI-HOSTPORT-DNAT … --comment "dnat name: \\"<net>\\" id: \\"<id>\\"" … -j CNI-DN-<hash>',
      pattern: /dnat name: \S{1,80} id: \S{6,64}/,
      level: "symptom",
      confidence: 0.4,
      decides: "The id in the comment: unknown to the runtime, and the rule is a dead pod's; known, and it is in use.",
    },
  ],
  logFragments: ["cni", "dnat"],
  inSnapshot: {
    visible: false,
    why: "Firewall rules are not read: doing so takes the very lock that portmap and kube-proxy fight for.",
  },
  versions: "portmap, all versions.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["List the CNI-DN chains whose comment names an unknown id; remove them manually."],
    gates: ["The id in the rule's comment is unknown to the runtime."],
  },
  byHand: [
    "iptables -t nat -S | grep CNI-DN: compare the ids in the comments with crictl pods, delete jump and chain of the dead.",
  ],
  danger: "The wrong chain is a live host port's.",
  links: [
    "https://github.com/containernetworking/plugins/issues/752",
    "https://github.com/containernetworking/plugins/issues/683",
    "https://github.com/cilium/cilium/issues/18227",
  ],
};
