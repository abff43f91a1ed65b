import type { FailureClass } from "../failure-class.ts";

const portmapContext =
  /portmap|plugin type=|sandbox|networkplugin cni|tear ?down|cni-(?:dn|sn|hostport|[0-9a-f]{20})|cni network/;

export const iptablesPortmap: FailureClass = {
  id: "iptables-portmap",
  code: "B17",
  category: "removal-fails",
  sharedCause: true,
  title: "iptables fails under the port-mapping plugin",
  explanation:
    "The plugin that maps host ports cannot change the firewall: another process holds the iptables lock, the rule is already gone, or the program is not on the host at all. After a reboot hundreds of removals compete with kube-proxy for that lock.",
  mechanism:
    "portmap runs iptables for both families on every DEL, mapping or not. The lock is global to the node; parallel teardowns of one sandbox delete each other's chains.",
  signatures: () => [
    {
      text: "could not teardown ipv4 dnat|snat: running [<iptables> …]: exit status <n>: …",
      pattern: /could not (?:tear ?down|set ?up) ipv[46] (?:dnat|snat)|unable to (?:setup|create) (?:dnat|snat|chain)/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "neither iptables nor ip6tables usable",
      pattern: /neither iptables nor ip6tables usable/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "running [/usr/sbin/iptables … CNI-…]: exit status <n>: …",
      pattern: /running \[\S{0,120}ip6?tables\S{0,12} [^\]]{0,500}\]: exit status/,
      within: portmapContext,
      level: "cause",
      confidence: 0.85,
    },
    {
      text: "Another app is currently holding the xtables lock / iptables: Resource temporarily unavailable",
      pattern:
        /holding the xtables lock|iptables: resource temporarily unavailable|failed to locate iptables|could not initialize iptables|iptables: executable file not found/,
      unless: /kube-proxy|proxier|iptables-restore|ufw|fail2ban|firewalld|dockerd/,
      level: "cause",
      confidence: 0.85,
    },
  ],
  logFragments: ["iptables", "xtables", "ipv4 ", "chain", "ipv6 "],
  inSnapshot: {
    visible: false,
    why: "A lock that is held for moments is not part of a snapshot; the error in the logs is the proof.",
  },
  versions: "Reported with portmap 0.8; any version can meet the lock.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Stop the sandboxes one at a time, with growing pauses.",
      "Missing program: report it; nothing else helps.",
    ],
    gates: ["The sandbox is dead.", "No other removal is under way."],
  },
  byHand: [
    "Wait; the kubelet's retries get through once the lock is free.",
    "Missing program: install iptables on the host.",
  ],
  danger: "Parallel removals make it worse. Never flush the nat table: it carries every service of the node.",
  links: [
    "https://github.com/containernetworking/plugins/issues/418",
    "https://github.com/containernetworking/plugins/issues/662",
    "https://github.com/containernetworking/plugins/issues/510",
    "https://github.com/antrea-io/antrea/issues/1499",
    "https://github.com/containerd/go-cni/issues/60",
    "https://github.com/siderolabs/talos/issues/374",
  ],
};
