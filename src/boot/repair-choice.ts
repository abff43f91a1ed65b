import { recoverDuplicateContainerName } from "../classes/runtime-down/recover-duplicate-container-name.ts";
import { recoverDuplicateSandboxName } from "../classes/runtime-down/recover-duplicate-sandbox-name.ts";
import { recoverMissingMetadata } from "../classes/runtime-down/recover-missing-metadata.ts";
import { type DuplicateName, duplicateContainerNames, duplicateSandboxNames } from "../diagnose/offline.ts";
import type { Source } from "../host/source.ts";
import { livenessOfStored } from "../liveness/stored.ts";
import type { MetadataFile } from "../snapshot/metadata-file.ts";
import type { ProcessFacts } from "../snapshot/types/processes.ts";

/** A record that prevents the runtime's start, and the one that stays instead. */
export interface ChosenRecord {
  readonly id: string;
  readonly store: "containers" | "sandboxes";
  readonly class: string;
  readonly reason: string;
}

export type Choice =
  | { readonly kind: "chosen"; readonly remove: readonly ChosenRecord[] }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Keeps one record of every name: the live one, else one that is also in the 2.x sandbox store, else the newest. If two
 * are alive, an operator has to choose. A record is removed from both stores, because containerd 2.x loads either.
 */
export function chooseRecords(file: MetadataFile, processes: Source<ProcessFacts>): Choice {
  const remove: ChosenRecord[] = [];
  const groups = [
    ...duplicateSandboxNames(file.records).map((group) => ({ group, of: recoverDuplicateSandboxName.id })),
    ...duplicateContainerNames(file).map((group) => ({ group, of: recoverDuplicateContainerName.id })),
  ];
  for (const { group, of } of groups) {
    const keeper = keeperOf(group, file, processes);
    if (keeper === undefined)
      return { kind: "refused", reason: `more than one record named ${group.name} is, or may be, alive` };
    for (const { id } of group.records) {
      if (id === keeper) continue;
      remove.push({
        id,
        store: "containers",
        class: of,
        reason: `${keeper} has the same name, ${group.name}, and stays`,
      });
    }
  }
  const known = new Set(file.records.map(({ id }) => id));
  for (const { id, sandbox } of file.sandboxes) {
    if (sandbox !== undefined || known.has(id)) continue;
    if (livenessOfStored(id, file, processes).state !== "dead") continue;
    remove.push({ id, store: "sandboxes", class: recoverMissingMetadata.id, reason: "it has no metadata" });
  }
  return { kind: "chosen", remove };
}

function keeperOf({ records }: DuplicateName, file: MetadataFile, processes: Source<ProcessFacts>): string | undefined {
  const notDead = records.filter(({ id }) => livenessOfStored(id, file, processes).state !== "dead");
  if (notDead.length > 1) return undefined;
  const [living] = notDead;
  if (living !== undefined) return living.id;
  const stored = new Set(file.sandboxes.map(({ id }) => id));
  const newestFirst = records.toSorted((one, other) => ageKey(other) - ageKey(one));
  return (newestFirst.find(({ id }) => stored.has(id)) ?? newestFirst[0])?.id;
}

function ageKey({ createdAt }: DuplicateName["records"][number]): number {
  return createdAt?.getTime() ?? 0;
}
