import type { Detected } from "../evidence/finding.ts";
import { isSettled } from "../evidence/pod-presence.ts";
import { isRecorded, type NodeView } from "../evidence/view.ts";
import { isFullId } from "../node/types/ids.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const snapshotLeaseLeak: ClassDefinition = {
  id: "snapshot-lease-leak",
  code: "C10",
  title: "Lease of a sandbox that is gone",
  explanation:
    "The runtime holds a lease in the name of a sandbox that no longer exists, and with it the disk space of its layers. Nothing breaks; the disk fills slowly.",
  mechanism:
    "From 2.1 each sandbox has a lease with its own id, removed only by rollback or RemovePodSandbox. Removing the record with ctr leaves it.",
  signatures: () => [
    {
      text: 'failed to create lease for sandbox "<id>": … already exists',
      pattern: /failed to (?:create|delete) lease for (?:pod )?sandbox|lease [0-9a-f]{64}: already exists/,
      confidence: 0.75,
    },
    {
      text: "failed to delete lease during cleanup: context deadline exceeded",
      pattern: /failed to delete lease during cleanup/,
      confidence: 0.7,
    },
  ],
  logFragments: ["sandbox", "lease"],
  inSnapshot: "A lease whose name is a sandbox id that is neither listed nor recorded.",
  versions: {
    since: "containerd 2.1 for leases; every release for writable snapshots",
    until: "open",
    ends: "No upgrade.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: ["Delete the lease; the runtime's own garbage collection frees the space."],
    gates: [
      "The id has been unknown everywhere for a day, or since before the current boot.",
      "No creation is in flight.",
    ],
  },
  byHand: ["ctr -n k8s.io leases ls, then ctr -n k8s.io leases rm <id> for ids that nothing knows."],
  danger: "A lease may protect a creation in flight.",
  links: ["containerd/containerd#13416", "containerd/containerd#6294", "containerd/containerd#10548"],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const { containerd, cri } = view.snapshot;
  if (containerd.status !== "read" || cri.status !== "read") return [];
  return containerd.value.leases
    .filter(({ id, createdAt }) => {
      // Since 2.1 a sandbox's lease has its id; all other leases belong to pulls and snapshots in progress.
      if (!isFullId(id)) return false;
      const about = view.about(id);
      const isKnown = about.sandbox !== undefined || isRecorded(about);
      return !isKnown && about.plugins.length === 0 && createdAt !== undefined && isSettled(createdAt, view);
    })
    .map(
      ({ id }): Detected => ({
        severity: "info",
        subject: { type: "lease", name: id },
        summary: "a containerd lease of a sandbox that no longer exists: it keeps content from being collected",
        evidence: [
          { source: "containerd", fact: `lease ${id} exists, no sandbox or record has that id` },
          { source: "cri", fact: "the runtime lists no such sandbox" },
        ],
        cure: [{ kind: "delete-lease", leaseId: id }],
      }),
    );
}
