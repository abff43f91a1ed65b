import type { Detected, Subject } from "../evidence/finding.ts";
import { metadataEvidence, NEXT_START } from "../evidence/stored-records.ts";
import type { MetadataFile } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

const etcd =
  /\betcd\b(?!\.io)|etcdserver|mvcc|member\/snap|consul|vault|influx|raft\b|grafana|loki|minio|docker\/network/;

export const boltCorruption: ClassDefinition = {
  id: "bolt-corruption",
  code: "D4",
  title: "The runtime's database is damaged",
  explanation:
    "A power cut or a failing disk damaged containerd's own database, and it crashes when it reads it. The node cannot run anything until the database is restored or made again.",
  mechanism: "meta.db is a bbolt file; a torn page makes bbolt panic while opening or walking it.",
  signatures: () => [
    { text: "panic: invalid page type: <n>: <n>", pattern: /invalid page type: \d/, unless: etcd, confidence: 0.9 },
    {
      text: "panic: freepages: failed to get all reachable pages (…)",
      pattern: /freepages: failed to get all reachable pages/,
      unless: etcd,
      confidence: 0.95,
    },
    {
      text: "panic: assertion failed: Page expected to be: <n>, but self identifies as <n>",
      pattern: /page expected to be: \d{1,20}, but self identifies as/,
      unless: etcd,
      confidence: 0.95,
    },
    {
      text: "slice bounds out of range … bbolt",
      pattern: /slice bounds out of range|unexpected fault address|invalid freelist page/,
      within: /bbolt|boltdb|meta\.db|metadata\.v1\.bolt/,
      unless: etcd,
      confidence: 0.85,
    },
    {
      text: "io.containerd.metadata.v1.bolt … invalid database",
      pattern:
        /(?:metadata\.v1\.bolt|meta\.db)[^]{0,200}?(?:invalid database|structure needs cleaning|checksum error|input\/output error)/,
      confidence: 0.9,
    },
  ],
  logFragments: ["bolt", "page type", "reachable pages", "page expected", "meta.db"],
  inSnapshot:
    "A runtime that does not run cannot be asked; `unghost scan --offline` reads its database instead and names it.",
  versions: {
    since: "every containerd release",
    until: "open",
    ends: "No upgrade: a disk that keeps what it confirmed, and no power cut.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Cordon the node.", "Restore the database from a copy, or start with an empty root."],
    gates: ["A copy of the damaged file has been kept."],
  },
  byHand: [
    "Keep a copy of meta.db. bbolt check, and where it helps bbolt surgery, on the copy.",
    "Otherwise move the containerd root away and let it be made again; images are pulled again.",
  ],
  danger:
    "After a wipe every old id is unknown: check for surviving processes before sweeping addresses and namespaces.",
  links: [
    "containerd/containerd#4838",
    "containerd/containerd#3347",
    "containerd/containerd#9929",
    "containerd/containerd#10666",
    "etcd-io/bbolt#883",
    "kubernetes/kubernetes#141599",
  ],
  detectOffline,
};

function detectOffline({ path, damage, isEmpty, records }: MetadataFile): readonly Detected[] {
  const subject = { type: "file", path } satisfies Subject;
  if (isEmpty) {
    return [
      {
        severity: "warning",
        subject,
        summary:
          "the database has no bytes at all: the runtime begins again, and knows no pod, container or image of before",
        evidence: [{ source: "metadata file", fact: `${path} is empty` }],
      },
    ];
  }
  if (damage.length === 0) return [];
  return [
    {
      severity: "critical",
      subject,
      summary: `the database does not check out: the runtime crashes when it reads the bad part; ${records.length} records can still be read`,
      evidence: metadataEvidence(damage.map(({ page, reason }) => `page ${page} ${reason}`)),
      blocks: [NEXT_START],
    },
  ];
}
