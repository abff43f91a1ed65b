import type { Detected } from "../../evidence/finding.ts";
import type { NodeView } from "../../evidence/view.ts";
import { valueOr } from "../../host/source.ts";
import type { AddressLease } from "../../node/types/cni.ts";
import type { FailureClass } from "../failure-class.ts";

export const hostlocalEmptyIpFile: FailureClass = {
  id: "hostlocal-empty-ip-file",
  code: "C2",
  category: "leak",
  title: "Address file without an owner",
  explanation:
    "A power cut left an address file empty. It blocks the address, and as it names no owner no removal will ever free it.",
  mechanism:
    "host-local creates the file and writes the owner into it without fsync. DEL matches by content, so an empty file matches nothing.",
  signatures: () => [
    {
      text: "-rw-r--r-- 1 root root 0 <date> <ip> (a listing of /var/lib/cni/networks/<net>)",
      pattern: /-[rwx-]{9}\S? \d{1,3} \S{1,32} \S{1,32} 0 [^/]{3,40} (?:\S{0,100}\/)?\d{1,3}(?:\.\d{1,3}){3}(?: |$)/,
      level: "cause",
      confidence: 0.8,
    },
  ],
  logFragments: ["root root"],
  inSnapshot: { visible: true, how: "An address file of zero bytes, older than the current boot." },
  versions: "host-local, all versions up to v1.9.1.",
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: ["Move the empty file to quarantine while holding the directory's lock."],
    gates: ["The file is empty and was written before the current boot.", "The lock is held."],
  },
  byHand: ["find /var/lib/cni/networks -type f -size 0 -name '*.*': remove those older than the last boot."],
  danger: "An allocation in progress is empty for a moment: without the lock and the boot test a live address is lost.",
  links: ["https://github.com/containernetworking/plugins/tree/main/plugins/ipam/host-local/backend/disk"],
  detect: detectEmptyFiles,
};

function detectEmptyFiles(view: NodeView): readonly Detected[] {
  return valueOr(view.snapshot.cni.hostLocal, []).flatMap((network) =>
    network.leases
      .filter((lease) => lease.owner === undefined && isNotBeingAllocated(lease, view))
      .map(
        (lease) =>
          ({
            severity: "warning",
            subject: { type: "file", path: lease.path },
            summary: `${lease.address} on network ${network.network} is reserved without an owner: the file that should name its owner ${lease.size === 0 ? "is empty" : "names none"}, so no DEL can ever match it`,
            evidence: [
              { source: "cni", fact: `${lease.path} has ${lease.size} bytes and names no container` },
              { source: "cni", fact: `it was last written ${lease.modifiedAt.toISOString()}` },
            ],
            blocks: [`an address of network ${network.network}`],
            cure: [{ kind: "drop-empty-lease", path: lease.path, networkDir: network.dir }],
          }) satisfies Detected,
      ),
  );
}

/** host-local creates the file and then writes the owner into it: for a moment every new one is empty. */
function isNotBeingAllocated(lease: AddressLease, { snapshot, policy }: NodeView): boolean {
  const written = lease.modifiedAt.getTime();
  if (snapshot.boot.status === "read" && written < snapshot.boot.value.startedAt.getTime()) return true;
  return snapshot.observedAt.getTime() - written >= policy.minAgeMs;
}
