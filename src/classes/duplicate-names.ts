import type { Detected } from "../evidence/finding.ts";
import { type Liveness, livenessOfStored } from "../evidence/liveness.ts";
import { signInWords } from "../evidence/liveness-words.ts";
import { createdInWords, metadataEvidence, NEXT_START } from "../evidence/stored-records.ts";
import type { Source } from "../host/source.ts";
import { parseSandboxName } from "../node/types/ids.ts";
import type { ProcessFacts } from "../node/types/runtime.ts";
import type { MetadataFile, OfflineFacts, StoredContainer } from "../node/types/snapshot.ts";
import type { ClassDefinition, SameName } from "./failure-class.ts";

export const recoverDuplicateSandboxName: ClassDefinition = {
  id: "recover-duplicate-sandbox-name",
  code: "D1",
  title: "The runtime does not start: two records of one sandbox name",
  explanation:
    "containerd finds two sandboxes with the same name in its database, exits, and is restarted forever. Nothing runs on the node until one of the two records is gone. The usual advice, to move the whole directory away, also throws away all images.",
  mechanism: "Recovery reserves each stored name; a conflict is returned as an error and ends the process.",
  signatures: () => [
    {
      text: 'level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve sandbox name …',
      pattern: /failed to recover state: failed to reserve sandbox name/,
      confidence: 0.98,
    },
  ],
  logFragments: ["recover state"],
  inSnapshot:
    "A runtime that does not run cannot be asked; `unghost scan --offline` reads its database instead and names it. While it still runs, the duplicates are found as C12.",
  versions: { since: "every containerd release", until: "open", ends: "No upgrade: main has it." },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Start the runtime with its CRI plugin switched off, on a private socket.",
      "Remove the duplicate that has no live shim.",
      "Start it normally.",
    ],
    gates: ["Exactly one of the records has a live shim, or none has."],
  },
  byHand: [
    "Disable the CRI plugin in containerd's configuration and start it.",
    "ctr -n k8s.io c ls / sandboxes ls: remove the duplicate without a task, then enable CRI again.",
  ],
  danger: "Wiping the root loses all images and orphans running containers; deleting only meta.db is worse.",
  links: ["containerd/containerd#6095", "containerd/containerd#13609", "containerd/cri#1014", "k3s-io/k3s#5189"],
  detectOffline: (file, facts) => sandboxNames(file).map((found) => duplicateFound("sandbox", found, file, facts)),
  refusedRecords: (file) => sandboxNames(file).map((found) => ({ kind: "same-name", ...found })),
};

export const recoverDuplicateContainerName: ClassDefinition = {
  id: "recover-duplicate-container-name",
  code: "D2",
  title: "The runtime does not start: two records of one container name",
  explanation:
    "containerd finds two containers with the same name in its database and does not start. This is a late consequence of a restart with a full disk (A6): one container was forgotten then, and the kubelet made a second.",
  mechanism: "As D1, for container names.",
  signatures: () => [
    {
      text: 'level=fatal msg="Failed to run CRI service" error="failed to recover state: failed to reserve container name …',
      pattern: /failed to recover state: failed to reserve container name/,
      confidence: 0.98,
    },
  ],
  logFragments: ["recover state"],
  inSnapshot:
    "A runtime that does not run cannot be asked; `unghost scan --offline` reads its database instead and names it. While it still runs, the duplicates are found as C12.",
  versions: { since: "every containerd release", until: "open", ends: "No upgrade: main has it." },
  treatment: {
    mode: "attended",
    reversible: true,
    steps: [
      "Free disk space.",
      "Start the runtime with its CRI plugin switched off and remove the duplicate that has no task.",
      "Start it normally.",
    ],
    gates: ["Exactly one of the records has a live task, or none has."],
  },
  byHand: ["As D1, with ctr -n k8s.io c rm for the container record that has no task."],
  danger: "Both copies may be running and writing to one volume.",
  links: ["containerd/containerd#7247", "containerd/containerd#11504"],
  detectOffline: (file, facts) => containerNames(file).map((found) => duplicateFound("container", found, file, facts)),
  refusedRecords: (file) => containerNames(file).map((found) => ({ kind: "same-name", ...found })),
};

/**
 * Sandbox names with several records. Only container records count: a sandbox that is only in the 2.x sandbox store is
 * loaded without reserving its name, and containerd 2.3 starts with such a duplicate.
 */
function sandboxNames({ records }: MetadataFile): readonly SameName[] {
  return duplicates(records, ({ sandbox }) => sandbox?.name);
}

/**
 * Container names with several records. containerd keeps the state of a container in its own directory; a record
 * without one cannot be loaded and reserves nothing.
 */
function containerNames({ records, containerDirs }: MetadataFile): readonly SameName[] {
  return duplicates(records, ({ id, container }) => (containerDirs?.has(id) === false ? undefined : container?.name));
}

function duplicates(
  records: readonly StoredContainer[],
  nameOf: (record: StoredContainer) => string | undefined,
): readonly SameName[] {
  return [...Map.groupBy(records, nameOf)].flatMap(([name, group]) =>
    name === undefined || group.length < 2 ? [] : [{ name, records: group }],
  );
}

function duplicateFound(
  kind: "sandbox" | "container",
  { name, records }: SameName,
  file: MetadataFile,
  { processes }: OfflineFacts,
): Detected {
  const judged = records.map(({ id, createdAt }) => ({ id, createdAt, life: livenessOfStored(id, file, processes) }));
  const [living, others] = [judged.filter(isAlive), judged.filter((one) => !isAlive(one))];
  const pod = kind === "sandbox" ? parseSandboxName(name) : undefined;
  return {
    severity: "critical",
    subject: { type: kind === "sandbox" ? "record" : "container", name, pod },
    summary: `${records.length} ${kind} records carry the name ${name}, and the runtime refuses to start because of it; ${whichToRemove(living.length, processes)}`,
    evidence: metadataEvidence(
      [...living, ...others].map(
        ({ id, createdAt, life }) => `${id}, ${createdInWords(createdAt)}; ${lifeInWords(life)}`,
      ),
    ),
    blocks: [NEXT_START],
  };
}

function isAlive({ life }: { readonly life: Liveness }): boolean {
  return life.state === "alive";
}

function lifeInWords(life: Liveness): string {
  switch (life.state) {
    case "alive":
      return signInWords(life.found[0]);
    case "dead":
      return "no shim and no process carries its id";
    case "unproven":
      return "whether it lives is not known: the process table could not be read";
  }
}

function whichToRemove(alive: number, processes: Source<ProcessFacts>): string {
  if (processes.status !== "read") return "which of them lives is not known";
  if (alive === 0) return "nothing of any of them lives";
  return alive === 1 ? "one of them lives and must stay" : `${alive} of them live: choose manually which one stays`;
}
