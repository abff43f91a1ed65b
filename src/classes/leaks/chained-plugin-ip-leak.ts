import type { FailureClass } from "../failure-class.ts";

export const chainedPluginIpLeak: FailureClass = {
  id: "chained-plugin-ip-leak",
  code: "C3",
  category: "leak",
  title: "One failing pod drains the address range",
  explanation:
    "The first plugin of the chain hands out an address, a later one fails, and the clean-up fails as well. The runtime forgets about it and tries again, with a new address each time, until the range is empty.",
  mechanism:
    "With no CNI result recorded the runtime ignores or skips the failing DEL of the rollback, so the early plugin's allocation stays. Each retry has a new sandbox id and allocates again.",
  signatures: () => [
    {
      text: "failed to allocate for range <n>: no IP addresses available in range set: <a>-<b>",
      pattern: /no ip addresses available in (?:range set|network)/,
      level: "cause",
      confidence: 0.3,
      decides:
        "The address files carry many different ids, made in a row, and one pod on the node fails to start in a loop.",
    },
    {
      text: "requested IP address <ip> is not available in range set <range>",
      pattern: /requested ip address \S{1,60} is not available in/,
      level: "cause",
      confidence: 0.2,
      decides: "One pod on the node fails to start in a loop, and each try leaves one more address file.",
    },
    {
      text: 'failed to setup network for sandbox "<id>": …, again and again for one pod',
      pattern: /\(x\d{2,9} over |\(combined from similar events\)/,
      within: /failed to (?:setup|set up) (?:network for sandbox|sandbox container)|failed \(add\)/,
      unless: /subnet\.env|pull image|sandbox image/,
      level: "symptom",
      confidence: 0.3,
      decides:
        "Whether each try leaves an address behind: count the files below /var/lib/cni/networks/<net> twice, a minute apart.",
    },
  ],
  logFragments: ["ip address", "sandbox"],
  inSnapshot: {
    visible: false,
    why: "The addresses it leaves are found one by one as C1; that one pod made them all is not concluded.",
  },
  versions:
    "Every release that skips or ignores DEL when no result was recorded: containerd 1.6.37+, 1.7.23+ and all of 2.x.",
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
  links: [
    "https://github.com/containerd/containerd/issues/12130",
    "https://github.com/containerd/containerd/pull/12132",
    "https://github.com/k8snetworkplumbingwg/multus-cni/issues/1449",
  ],
};
