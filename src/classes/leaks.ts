import type { ClassDefinition } from "./failure-class.ts";

export const chainedPluginIpLeak: ClassDefinition = {
  id: "chained-plugin-ip-leak",
  code: "C3",
  title: "One failing pod drains the address range",
  explanation:
    "The first plugin of the chain hands out an address, a later one fails, and the clean-up fails as well. The runtime forgets about it and tries again, with a new address each time, until the range is empty.",
  mechanism:
    "With no CNI result recorded the runtime ignores or skips the failing DEL of the rollback, so the early plugin's allocation stays. Each retry has a new sandbox id and allocates again.",
  signatures: () => [
    {
      text: "failed to allocate for range <n>: no IP addresses available in range set: <a>-<b>",
      pattern: /no ip addresses available in (?:range set|network)/,
      confidence: 0.3,
      decides:
        "The address files carry many different ids, made in a row, and one pod on the node fails to start in a loop.",
    },
    {
      text: "requested IP address <ip> is not available in range set <range>",
      pattern: /requested ip address \S{1,60} is not available in/,
      confidence: 0.2,
      decides: "One pod on the node fails to start in a loop, and each try leaves one more address file.",
    },
  ],
  logFragments: ["ip address", "sandbox"],
  inSnapshot: "The addresses it leaves are found one by one as C1; that one pod made them all is not concluded.",
  versions: {
    since: "containerd 1.6.37, 1.7.23 and 2.0",
    until: "open",
    ends: "No upgrade: a release that calls DEL for an incomplete ADD leaks where the first plugin to fail ends the chain.",
  },
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["The addresses left behind are found and freed as C1.", "Name the plugin that fails."],
    gates: [
      "The id is unknown to CRI and records, and old enough not to be in flight.",
      "The address is on no live interface.",
    ],
  },
  byHand: ["Repair the failing plugin first, then free the addresses as in C1."],
  danger: "An id may belong to a creation in flight: mind its age.",
  links: ["containerd/containerd#12130", "containerd/containerd/pull/12132", "k8snetworkplumbingwg/multus-cni#1449"],
};

export const delNeverExecuted: ClassDefinition = {
  id: "del-never-executed",
  code: "C4",
  title: "Teardown reported, but never executed",
  explanation:
    "The runtime died after the network was set up and before it had written that down. Later it reports the network as torn down although no plugin was ever called, and the address stays allocated.",
  mechanism: "With no result recorded these releases skip CNI DEL entirely and log success.",
  inSnapshot: "It shows only through what it leaves, which is found as C1.",
  versions: {
    since: "containerd 1.6.37, 1.7.23, 2.0.0, 2.1.0 and 2.2.0",
    until: "containerd 1.7.30, 2.0.7, 2.1.6 and 2.2.1; 1.6 to its end",
    ends: "Upgrade containerd to 1.7.31, 2.0.8, 2.1.7, 2.2.2 or 2.3.",
  },
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["The address left behind is found and freed as C1."],
    gates: ["As in C1."],
  },
  byHand: ["Upgrade containerd to 1.7.31, 2.0.8, 2.1.7 or 2.2.2, then free the addresses as in C1."],
  danger: "As in C1: wiping the directory while pods run hands addresses out twice.",
  links: ["containerd/containerd/pull/12923"],
};

export const delSwallowed: ClassDefinition = {
  id: "del-swallowed",
  code: "C5",
  title: "A failed DEL was reported as success",
  explanation:
    "The plugin failed to take the network down, but a caller in between reported success. The pod is removed, and what the plugin held, mostly an address, stays.",
  mechanism:
    "The multus shim from 4.0.2 always returns success on DEL. go-cni takes any error with “not found”, and “no such file or directory” with an empty namespace path, for success.",
  signatures: () => [
    { text: "[error] CmdDel (shim): <error>", pattern: /\[error\] cmd(?:del|check) \(shim\):/, confidence: 0.75 },
    { text: "CmdDel (shim): <error>", pattern: /cmddel \(shim\):/, level: "wrapper", confidence: 0.75 },
    {
      text: "CmdCheck (shim): <error> (multus 4.0.2 prints this on DEL)",
      pattern: /cmdcheck \(shim\):/,
      level: "wrapper",
      confidence: 0.6,
    },
  ],
  logFragments: ["shim"],
  inSnapshot: "It shows only through what it leaves, which is found as C1.",
  versions: { since: "multus shim 4.0.2; every release of go-cni", until: "open", ends: "No upgrade." },
  treatment: {
    mode: "none",
    reversible: true,
    steps: ["The address left behind is found and freed as C1."],
    gates: ["As in C1."],
  },
  byHand: ["Free the address in host-local or whereabouts by hand."],
  danger: "None beyond those of C1.",
  links: [
    "k8snetworkplumbingwg/multus-cni#1239",
    "k8snetworkplumbingwg/multus-cni#891",
    "k8snetworkplumbingwg/multus-cni/pull/1084",
  ],
};

export const sandboxListOverflow: ClassDefinition = {
  id: "sandbox-list-overflow",
  code: "C9",
  title: "Too many dead sandboxes to list",
  explanation:
    "The list of dead sandboxes has outgrown the largest message that the runtime can send. The kubelet goes blind, the node becomes NotReady, and crictl fails as well.",
  mechanism:
    "A CRI answer may be 16 MiB. When the kubelet's garbage collection is starved, tens of thousands of NotReady sandboxes exceed that.",
  signatures: () => [
    {
      text: "ResourceExhausted desc = grpc: trying to send message larger than max (<n> vs. 16777216)",
      pattern: /(?:trying to send|received) message larger than max/,
      within:
        /listpodsandbox|listcontainers|pod ?sandbox|pleg|runtime service|containergc|garbage collect|crictl|list(?:ing)? containers|cri-containerd|ctr:|vs\. 16777216|vs\. 8388608/,
      unless: /device plugin|registry-adapter/,
      confidence: 0.9,
    },
    {
      text: "GenericPLEG: Unable to retrieve pods … ResourceExhausted",
      pattern: /(?:unable to retrieve pods|listpodsandbox)[^]{0,300}?resourceexhausted/,
      confidence: 0.9,
    },
    {
      text: "GenericPLEG: Unable to retrieve pods: …",
      pattern: /unable to retrieve pods/,
      within: /pleg/,
      unless: /connection refused|containerd\.sock|crio\.sock|retrieve pods[^]{0,40}(?:…|\.{3}|>)/,
      level: "symptom",
      confidence: 0.4,
      decides:
        "The error behind it: ResourceExhausted is this class; DeadlineExceeded points at a runtime that hangs (D5).",
    },
  ],
  logFragments: ["grpc", "retrieve pods", "larger than max"],
  inSnapshot: "A list that cannot be fetched is reported as a source that could not be read.",
  versions: {
    since: "every release",
    until: "open",
    ends: "containerd 2.4 with a kubelet that uses streaming lists; elsewhere fewer dead sandboxes, because the limit is 16 MiB.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["List in pages by label.", "Remove the dead sandboxes of pods that no longer exist, slowly."],
    gates: ["Each sandbox is dead and its pod gone.", "Few removals at a time: each is a CNI DEL."],
  },
  byHand: ["crictl pods --label … per namespace, or ctr -n k8s.io c ls; remove in small groups."],
  danger: "Removing thousands at once is a storm of CNI calls that takes the node down.",
  links: [
    "containerd/containerd#12390",
    "kubernetes/kubernetes#131407",
    "kubernetes/kubernetes#108049",
    "kubernetes/kubernetes#63858",
    "siderolabs/talos#10801",
  ],
};

export const staleHostportRules: ClassDefinition = {
  id: "stale-hostport-rules",
  code: "C11",
  title: "Firewall rules of a dead pod swallow a host port",
  explanation:
    "Rules of a pod that is gone still send a host port to its old address. They stand before the new pod's rules, so connections to that port vanish.",
  mechanism:
    "Chain names are hashed from network name and id. After a lost DEL, or a renamed network, nothing removes them.",
  signatures: () => [
    {
      text: '-A CNI-HOSTPORT-DNAT … --comment "dnat name: \\"<net>\\" id: \\"<id>\\"" … -j CNI-DN-<hash>',
      pattern: /dnat name: \S{1,80} id: \S{1,90}/,
      level: "symptom",
      confidence: 0.4,
      decides: "The id in the comment: unknown to the runtime, and the rule is a dead pod's; known, and it is in use.",
    },
  ],
  logFragments: ["cni", "dnat"],
  inSnapshot: "Firewall rules are not read: doing so takes the very lock that portmap and kube-proxy fight for.",
  versions: { since: "every release of portmap", until: "open", ends: "No upgrade." },
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
  links: ["containernetworking/plugins#752", "containernetworking/plugins#683", "cilium/cilium#18227"],
};
