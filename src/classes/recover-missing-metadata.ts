import type { Detected } from "../evidence/finding.ts";
import { createdInWords, NEXT_START } from "../evidence/stored-records.ts";
import { containerdBehaviour } from "../evidence/versions.ts";
import { sandboxId } from "../node/types/ids.ts";
import type { MetadataFile, OfflineFacts } from "../node/types/snapshot.ts";
import type { ClassDefinition, RefusedRecords } from "./failure-class.ts";

export const recoverMissingMetadata: ClassDefinition = {
  id: "recover-missing-metadata",
  code: "D3",
  title: "The runtime does not start: a sandbox record without metadata",
  explanation:
    "containerd was cut off between two writes and now finds a sandbox without its description. These versions refuse to start because of it; newer ones drop the record on their own.",
  mechanism: "The record was first saved without metadata and completed later; a crash in between leaves it half.",
  signatures: () => [
    {
      text: 'failed to recover state: failed to get metadata for stored sandbox "<id>": not found',
      pattern: /failed to get metadata for stored sandbox/,
      confidence: 0.98,
    },
    {
      text: 'failed to recover sandbox state: unable to find sandbox "<id>": not found',
      pattern: /failed to recover sandbox state/,
      decides:
        "The fatal line that follows: “get metadata for stored sandbox” is this class; none follows and the runtime runs: it only tidied up.",
      level: "wrapper",
      confidence: 0.5,
    },
  ],
  logFragments: ["sandbox", "recover state"],
  inSnapshot:
    "A runtime that does not run cannot be asked; `unghost scan --offline` reads its database instead and names it.",
  versions: {
    since: "containerd 2.0.0 and 2.1.0",
    until: "containerd 2.0.5 and 2.1.3",
    ends: "Upgrade containerd to 2.0.6, 2.1.4 or 2.2.",
  },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Upgrade containerd; from 2.0.6, 2.1.4 and 2.2.0 it drops such records itself.",
      "Or start it with the CRI plugin switched off and remove the record.",
    ],
    gates: ["The record has no container behind it."],
  },
  byHand: ["Upgrade, or with CRI disabled: ctr -n k8s.io sandboxes rm <id>, then start normally."],
  danger: "On Talos a reset of EPHEMERAL heals it and wipes the node's data.",
  links: [
    "containerd/containerd#10848",
    "containerd/containerd/pull/11576",
    "containerd/containerd/pull/11612",
    "k3s-io/k3s#11973",
    "siderolabs/talos#9496",
  ],
  detectOffline,
  refusedRecords,
};

/** A container record of the same id is read first, and the incomplete record is then skipped. */
function detectOffline(file: MetadataFile, { containerdVersion: version }: OfflineFacts): readonly Detected[] {
  const behaviour = version === undefined ? undefined : containerdBehaviour(version);
  if (behaviour !== undefined && !behaviour.fatalWithoutMetadata) return [];
  const recovered = new Set(file.records.flatMap(({ id, sandbox }) => (sandbox === undefined ? [] : [id])));
  const incomplete = file.sandboxes.filter(({ id, sandbox }) => sandbox === undefined && !recovered.has(id));
  const isFatal = behaviour !== undefined;
  return incomplete.map(({ id, createdAt }) => ({
    severity: isFatal ? "critical" : "warning",
    subject: { type: "record", name: id, sandboxId: sandboxId(id) },
    summary: isFatal
      ? `a stored sandbox has no metadata, and containerd ${version} refuses to start because of it`
      : "a stored sandbox has no metadata: containerd 2.0.0 to 2.0.5 and 2.1.0 to 2.1.3 refuse to start because of it, others drop it; which version will be started is not known here",
    evidence: [
      { source: "metadata file", fact: `${id}, ${createdInWords(createdAt)}, has no metadata that could be decoded` },
      { source: "metadata file", fact: "no container record has its id" },
    ],
    blocks: isFatal ? [NEXT_START] : [],
  }));
}

/** One with a container record of its id is left to the runtime. */
function refusedRecords({ records, sandboxes }: MetadataFile): readonly RefusedRecords[] {
  const known = new Set(records.map(({ id }) => id));
  return sandboxes
    .filter(({ id, sandbox }) => sandbox === undefined && !known.has(id))
    .map(({ id }) => ({ kind: "incomplete", id }));
}
