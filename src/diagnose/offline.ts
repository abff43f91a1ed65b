import { deadAfterCrash } from "../classes/left-behind/dead-after-crash.ts";
import { boltCorruption } from "../classes/runtime-down/bolt-corruption.ts";
import { recoverDuplicateContainerName } from "../classes/runtime-down/recover-duplicate-container-name.ts";
import { recoverDuplicateSandboxName } from "../classes/runtime-down/recover-duplicate-sandbox-name.ts";
import { recoverMissingMetadata } from "../classes/runtime-down/recover-missing-metadata.ts";
import type { Evidence, Finding, Subject } from "../evidence/finding.ts";
import { containerdBehaviour } from "../evidence/versions.ts";
import type { Source } from "../host/source.ts";
import type { Liveness } from "../liveness/liveness.ts";
import { livenessOfStored } from "../liveness/stored.ts";
import { signInWords } from "../liveness/words.ts";
import { damageInWords } from "../snapshot/bolt/layout.ts";
import { parseSandboxName, sandboxId } from "../snapshot/ids.ts";
import type { MetadataFile } from "../snapshot/metadata-file.ts";
import type { StoredContainer } from "../snapshot/metadata-records.ts";
import type { OfflineFacts } from "../snapshot/observe-offline.ts";
import type { ProcessFacts } from "../snapshot/types/processes.ts";
import { toFinding } from "./from-logs.ts";
import { comingBack } from "./verdict.ts";

/** What will prevent the runtime from starting, and what it will bring back. Pure. */
export function diagnoseOffline(facts: OfflineFacts): readonly Finding[] {
  const { metadata } = facts;
  if (metadata.status !== "read") return [];
  const file = metadata.value;
  return [
    ...damaged(file),
    ...duplicateSandboxNames(file.records).map((duplicate) =>
      toFinding(recoverDuplicateSandboxName, duplicateFound("sandbox", duplicate, file, facts.processes)),
    ),
    ...duplicateContainerNames(file).map((duplicate) =>
      toFinding(recoverDuplicateContainerName, duplicateFound("container", duplicate, file, facts.processes)),
    ),
    ...withoutMetadata(file, facts.containerdVersion),
    ...returning(file, facts),
  ];
}

const START = "the next start of the runtime";
/** How many of a kind are listed by name; the rest is counted. */
const NAMED = 10;

function evidenceFor(facts: readonly string[]): readonly Evidence[] {
  const more = facts.length > NAMED ? [`and ${facts.length - NAMED} more`] : [];
  return [...facts.slice(0, NAMED), ...more].map((fact) => ({ source: "metadata file", fact }));
}

function damaged({ path, damage, isEmpty, records }: MetadataFile): readonly Finding[] {
  const subject = { type: "file", path } satisfies Subject;
  if (isEmpty) {
    const finding = toFinding(boltCorruption, {
      severity: "warning",
      subject,
      summary:
        "the database has no bytes at all: the runtime begins again, and knows no pod, container or image of before",
      evidence: [{ source: "metadata file", fact: `${path} is empty` }],
      blocks: [],
      cure: [],
    });
    return [finding];
  }
  if (damage.length === 0) return [];
  const finding = toFinding(boltCorruption, {
    severity: "critical",
    subject,
    summary: `the database does not check out: the runtime crashes when it reads the bad part; ${records.length} records can still be read`,
    evidence: evidenceFor(damage.map(damageInWords)),
    blocks: [START],
    cure: [],
  });
  return [finding];
}

function duplicateFound(
  kind: "sandbox" | "container",
  { name, records }: DuplicateName,
  file: MetadataFile,
  processes: Source<ProcessFacts>,
) {
  const judged = records.map(({ id, createdAt }) => ({ id, createdAt, life: livenessOfStored(id, file, processes) }));
  const [living, others] = [judged.filter(isAlive), judged.filter((one) => !isAlive(one))];
  const pod = kind === "sandbox" ? parseSandboxName(name) : undefined;
  return {
    severity: "critical",
    subject: { type: kind === "sandbox" ? "record" : "container", name, pod },
    summary: `${records.length} ${kind} records carry the name ${name}, and the runtime refuses to start because of it; ${whichToRemove(living.length, processes)}`,
    evidence: evidenceFor(
      [...living, ...others].map(
        ({ id, createdAt, life }) => `${id}, ${createdInWords(createdAt)}; ${lifeInWords(life)}`,
      ),
    ),
    blocks: [START],
    cure: [],
  } as const;
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

function createdInWords(createdAt: Date | undefined): string {
  return createdAt === undefined ? "of unknown age" : `created ${createdAt.toISOString()}`;
}

/** A container record of the same id is read first, and the incomplete record is then skipped. */
function withoutMetadata(file: MetadataFile, version: string | undefined): readonly Finding[] {
  const behaviour = version === undefined ? undefined : containerdBehaviour(version);
  if (behaviour !== undefined && !behaviour.fatalWithoutMetadata) return [];
  const recovered = new Set(file.records.flatMap(({ id, sandbox }) => (sandbox === undefined ? [] : [id])));
  const incomplete = file.sandboxes.filter(({ id, sandbox }) => sandbox === undefined && !recovered.has(id));
  const isFatal = behaviour !== undefined;
  return incomplete.map(({ id, createdAt }) =>
    toFinding(recoverMissingMetadata, {
      severity: isFatal ? "critical" : "warning",
      subject: { type: "record", name: id, sandboxId: sandboxId(id) },
      summary: isFatal
        ? `a stored sandbox has no metadata, and containerd ${version} refuses to start because of it`
        : "a stored sandbox has no metadata: containerd 2.0.0 to 2.0.5 and 2.1.0 to 2.1.3 refuse to start because of it, others drop it; which version will be started is not known here",
      evidence: [
        { source: "metadata file", fact: `${id}, ${createdInWords(createdAt)}, has no metadata that could be decoded` },
        { source: "metadata file", fact: "no container record has its id" },
      ],
      blocks: isFatal ? [START] : [],
      cure: [],
    }),
  );
}

/** One finding for all of them: which one is stuck is known only after the runtime's start. */
function returning(file: MetadataFile, facts: OfflineFacts): readonly Finding[] {
  const back = comingBack(facts);
  if (back.length === 0) return [];
  const names = back.map(({ podName }) => podName).toSorted();
  const more = names.length > NAMED ? ` and ${names.length - NAMED} more` : "";
  const holding = back.filter(({ holdsNetwork }) => holdsNetwork).length;
  const evidence: Evidence[] = [
    { source: "metadata file", fact: `records without a live process: ${names.slice(0, NAMED).join(", ")}${more}` },
  ];
  if (holding > 0)
    evidence.push({ source: "cni", fact: `${holding} of them still hold an address or a cached result` });
  const finding = toFinding(deadAfterCrash, {
    severity: "warning",
    subject: { type: "node", path: file.path },
    summary: `${back.length === 1 ? "1 stored sandbox is" : `${back.length} stored sandboxes are`} dead and not taken down: the next start of the runtime brings them back NotReady, with their names taken`,
    evidence,
    blocks: [],
    cure: [],
  });
  return [finding];
}

/** Records that will reserve the same name when the runtime starts. */
export interface DuplicateName {
  readonly name: string;
  readonly records: readonly StoredContainer[];
}

/**
 * Sandbox names with several records. Only container records count: a sandbox that is only in the 2.x sandbox store is
 * loaded without reserving its name, and containerd 2.3 starts with such a duplicate.
 */
export function duplicateSandboxNames(records: readonly StoredContainer[]): readonly DuplicateName[] {
  return duplicates(records, ({ sandbox }) => sandbox?.name);
}

/**
 * Container names with several records. containerd keeps the state of a container in its own directory; a record
 * without one cannot be loaded and reserves nothing.
 */
export function duplicateContainerNames({
  records,
  containerDirs,
}: Pick<MetadataFile, "records" | "containerDirs">): readonly DuplicateName[] {
  return duplicates(records, ({ id, container }) => (containerDirs?.has(id) === false ? undefined : container?.name));
}

function duplicates(
  records: readonly StoredContainer[],
  nameOf: (record: StoredContainer) => string | undefined,
): readonly DuplicateName[] {
  return [...Map.groupBy(records, nameOf)].flatMap(([name, group]) =>
    name === undefined || group.length < 2 ? [] : [{ name, records: group }],
  );
}
