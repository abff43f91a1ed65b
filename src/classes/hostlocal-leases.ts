import type { Detected } from "../evidence/finding.ts";
import { leaseRefs, stepToMoveOrphan } from "../evidence/sandbox-detected.ts";
import { evidenceOfAbsence, unknownIds } from "../evidence/unknown-ids.ts";
import { cacheFilesOf, type NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { AddressLease } from "../node/types/cni.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const hostlocalEmptyIpFile: ClassDefinition = {
  id: "hostlocal-empty-ip-file",
  code: "C2",
  title: "Address file without an owner",
  explanation:
    "A power cut left an address file empty. It blocks the address, and as it names no owner no removal will ever free it.",
  mechanism:
    "host-local creates the file and writes the owner into it without fsync. DEL matches by content, so an empty file matches nothing.",
  signatures: () => [
    {
      text: "-rw-r--r-- 1 root root 0 <date> <ip> (a listing of /var/lib/cni/networks/<net>)",
      pattern: /-[rwx-]{9}\S? \d{1,3} \S{1,32} \S{1,32} 0 [^/]{3,40} (?:\S{0,100}\/)?\d{1,3}(?:\.\d{1,3}){3}(?: |$)/,
      confidence: 0.8,
    },
  ],
  logFragments: ["root root"],
  inSnapshot: "An address file of zero bytes, older than the current boot.",
  versions: {
    since: "every release of host-local",
    until: "open",
    ends: "No upgrade: 1.9.1 has it. `unghost keep` prevents the empty file.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: ["Move the empty file to quarantine while holding the directory's lock."],
    gates: ["The file is empty and was written before the current boot.", "The lock is held."],
  },
  byHand: ["find /var/lib/cni/networks -type f -size 0 -name '*.*': remove those older than the last boot."],
  danger: "An allocation in progress is empty for a moment: without the lock and the boot test a live address is lost.",
  links: ["containernetworking/plugins/tree/main/plugins/ipam/host-local/backend/disk"],
  detect: detectEmptyFiles,
};

function detectEmptyFiles(view: NodeView): readonly Detected[] {
  return valueOr(view.snapshot.cni.hostLocal, []).flatMap((network) =>
    network.leases
      .filter((lease) => lease.owner === undefined && isNotBeingAllocated(lease, view))
      .map(
        (lease): Detected => ({
          severity: "warning",
          subject: { type: "file", path: lease.path },
          summary: `${lease.address} on network ${network.network} is reserved without an owner: the file that should name its owner ${lease.size === 0 ? "is empty" : "names none"}, so no DEL can ever match it`,
          evidence: [
            { source: "cni", fact: `${lease.path} has ${lease.size} bytes and names no container` },
            { source: "cni", fact: `it was last written ${lease.modifiedAt.toISOString()}` },
          ],
          blocks: [`an address of network ${network.network}`],
          cure: [{ kind: "drop-empty-lease", path: lease.path, networkDir: network.dir }],
        }),
      ),
  );
}

/** host-local creates the file and then writes the owner into it: for a moment every new one is empty. */
function isNotBeingAllocated(lease: AddressLease, { snapshot, policy }: NodeView): boolean {
  const written = lease.modifiedAt.getTime();
  if (snapshot.boot.status === "read" && written < snapshot.boot.value.startedAt.getTime()) return true;
  return snapshot.observedAt.getTime() - written >= policy.minAgeMs;
}

const decides =
  "The ids in the files below /var/lib/cni/networks/<net>: unknown ids from before the last boot are this class; many fresh unknown ids of one pod that fails in a loop are C3; all ids known means the range is simply full.";

export const hostlocalIpLeakAfterReboot: ClassDefinition = {
  id: "hostlocal-ip-leak-after-reboot",
  code: "C1",
  title: "Addresses of dead pods were never given back",
  explanation:
    "Each pod's address is a small file on the node. Pods that died with the node, or whose removal was swallowed, left theirs behind. When the range is full no new pod gets an address, though only a few pods run.",
  mechanism:
    "host-local keeps /var/lib/cni/networks/<net>/<ip>. DEL was not delivered, was taken for done, or was killed. containerd never calls CNI GC, and host-local has none.",
  signatures: () => [
    {
      text: "failed to allocate for range <n>: no IP addresses available in range set: <a>-<b>",
      pattern: /no ip addresses available in (?:range set|network)/,
      confidence: 0.7,
      decides,
    },
    {
      text: "requested IP address <ip> is not available in range set <range>",
      pattern: /requested ip address \S{1,60} is not available in/,
      confidence: 0.7,
      decides,
    },
    {
      text: "<ip> has been allocated to <id>, duplicate allocation is not allowed",
      pattern: /has been allocated to \S{1,90}, ?duplicate allocation is not allowed/,
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
  inSnapshot: "An address file whose id is neither listed over CRI nor in the runtime's records.",
  versions: {
    since: "every release of host-local: flannel, canal, bridge, macvlan and others",
    until: "open",
    ends: "No upgrade. A plugin whose DEL is called for each dead sandbox frees them.",
  },
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
    "k3s-io/k3s#5885",
    "harvester/harvester#7471",
    "rancher/rke2#4385",
    "kubernetes/kubernetes#57280",
    "kubernetes/kubernetes#108121",
    "containernetworking/plugins#252",
    "containernetworking/plugins#697",
    "containerd/cri#948",
  ],
  detect: detectLeases,
};

function detectLeases(view: NodeView): readonly Detected[] {
  return unknownIds(view).flatMap(({ id, about }) => {
    const [first] = about.leases;
    if (first === undefined) return [];
    const leases = leaseRefs(about);
    const files = cacheFilesOf(about);
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
        cure: [{ kind: "release-addresses", sandboxId: id, leases }, ...files.map(stepToMoveOrphan)],
      } satisfies Detected,
    ];
  });
}
