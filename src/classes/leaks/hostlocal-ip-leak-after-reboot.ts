import type { Detected } from "../../evidence/finding.ts";
import { evidenceOfAbsence, unknownIds } from "../../evidence/unknown-ids.ts";
import type { NodeView } from "../../evidence/view.ts";
import type { FailureClass } from "../failure-class.ts";

const decides =
  "The ids in the files below /var/lib/cni/networks/<net>: unknown ids from before the last boot are this class; many fresh unknown ids of one pod that fails in a loop are C3; all ids known means the range is simply full.";

export const hostlocalIpLeakAfterReboot: FailureClass = {
  id: "hostlocal-ip-leak-after-reboot",
  code: "C1",
  category: "leak",
  title: "Addresses of dead pods were never given back",
  explanation:
    "Each pod's address is a small file on the node. Pods that died with the node, or whose removal was swallowed, left theirs behind. When the range is full no new pod gets an address, though only a few pods run.",
  mechanism:
    "host-local keeps /var/lib/cni/networks/<net>/<ip>. DEL was not delivered, was taken for done, or was killed. containerd never calls CNI GC, and host-local has none.",
  signatures: () => [
    {
      text: "failed to allocate for range <n>: no IP addresses available in range set: <a>-<b>",
      pattern: /no ip addresses available in (?:range set|network)/,
      level: "cause",
      confidence: 0.7,
      decides,
    },
    {
      text: "requested IP address <ip> is not available in range set <range>",
      pattern: /requested ip address \S{1,60} is not available in/,
      level: "cause",
      confidence: 0.7,
      decides,
    },
    {
      text: "<ip> has been allocated to <id>, duplicate allocation is not allowed",
      pattern: /has been allocated to \S{1,90}, ?duplicate allocation is not allowed/,
      level: "cause",
      confidence: 0.75,
      decides,
    },
    {
      text: "failed to allocate for range <n>: … (cut)",
      pattern: /failed to allocate for range \d/,
      level: "wrapper",
      confidence: 0.6,
      decides,
    },
  ],
  logFragments: ["ip address", "allocate for range", "allocated to"],
  inSnapshot: {
    visible: true,
    how: "An address file whose id is neither listed over CRI nor in the runtime's records.",
  },
  versions: "Every runtime with host-local: flannel, canal, bridge, macvlan and others.",
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Call DEL for the dead id again, through the whole chain, where its configuration is still cached.",
      "Else call host-local's own DEL for the dead id, which frees its addresses under host-local's own lock.",
    ],
    gates: [
      "The id is in neither the CRI list nor the runtime's records.",
      "The address is on no live interface or route.",
      "No creation is in flight.",
    ],
  },
  byHand: [
    "Compare the ids in /var/lib/cni/networks/<net>/* with crictl pods --no-trunc.",
    "Remove the files of ids that do not exist any more, while holding the lock file of that directory.",
  ],
  danger: "Wiping the whole directory while pods run hands their addresses out a second time.",
  links: [
    "https://github.com/k3s-io/k3s/issues/5885",
    "https://github.com/harvester/harvester/issues/7471",
    "https://github.com/rancher/rke2/issues/4385",
    "https://github.com/kubernetes/kubernetes/issues/57280",
    "https://github.com/kubernetes/kubernetes/issues/108121",
    "https://github.com/containernetworking/plugins/issues/252",
    "https://github.com/containernetworking/plugins/issues/697",
    "https://github.com/containerd/cri/issues/948",
  ],
  detect: detectLeases,
};

function detectLeases(view: NodeView): readonly Detected[] {
  return unknownIds(view).flatMap(({ id, about }) => {
    const [first] = about.leases;
    if (first === undefined) return [];
    const leases = about.leases.map(({ network, path, address, owner }) => ({
      network,
      path,
      address,
      interfaceName: owner?.interfaceName ?? "",
    }));
    const files = [...about.results, about.multus, about.flannel].filter((file) => file !== undefined);
    const addresses = leases.map(({ address }) => address).join(", ");
    return [
      {
        severity: "warning",
        subject: { type: "file", path: first.path, sandboxId: id },
        summary: `${addresses} on network ${first.network} ${leases.length === 1 ? "is" : "are"} leased to a sandbox that no longer exists, so nothing releases ${leases.length === 1 ? "it" : "them"}`,
        evidence: [
          { source: "cni", fact: `${first.path} names ${id}` },
          ...evidenceOfAbsence(view),
          ...files.map((file) => ({ source: "cni", fact: `${file.path} is left of it, too` })),
        ],
        blocks: [`${leases.length === 1 ? "an address" : "addresses"} of network ${first.network}`],
        cure: [
          { kind: "release-addresses", sandboxId: id, leases },
          ...files.map((file) => ({ kind: "quarantine-file", path: file.path, health: "orphaned" }) as const),
        ],
      } satisfies Detected,
    ];
  });
}
