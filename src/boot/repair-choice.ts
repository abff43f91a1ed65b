import type { RefusedRecords, SameName } from "../classes/failure-class.ts";
import { classes } from "../classes/index.ts";
import { livenessOfStored } from "../evidence/liveness.ts";
import type { Source } from "../host/source.ts";
import type { MetadataFile } from "../node/types/offline.ts";
import type { ProcessFacts } from "../node/types/runtime.ts";

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
  for (const { refused, of } of refusedRecords(file)) {
    if (refused.kind === "incomplete") {
      const { id } = refused;
      if (livenessOfStored(id, file, processes).state === "dead")
        remove.push({ id, store: "sandboxes", class: of, reason: "it has no metadata" });
      continue;
    }
    const { name, records } = refused;
    const keeper = keeperOf(refused, file, processes);
    if (keeper === undefined)
      return { kind: "refused", reason: `more than one record named ${name} is, or may be, alive` };
    for (const { id } of records) {
      if (id === keeper) continue;
      remove.push({ id, store: "containers", class: of, reason: `${keeper} has the same name, ${name}, and stays` });
    }
  }
  return { kind: "chosen", remove };
}

function refusedRecords(file: MetadataFile): readonly { readonly refused: RefusedRecords; readonly of: string }[] {
  return classes.flatMap((one) => (one.refusedRecords?.(file) ?? []).map((refused) => ({ refused, of: one.id })));
}

function keeperOf({ records }: SameName, file: MetadataFile, processes: Source<ProcessFacts>): string | undefined {
  const notDead = records.filter(({ id }) => livenessOfStored(id, file, processes).state !== "dead");
  if (notDead.length > 1) return undefined;
  const [living] = notDead;
  if (living !== undefined) return living.id;
  const stored = new Set(file.sandboxes.map(({ id }) => id));
  const newestFirst = records.toSorted((one, other) => ageKey(other) - ageKey(one));
  return (newestFirst.find(({ id }) => stored.has(id)) ?? newestFirst[0])?.id;
}

function ageKey({ createdAt }: SameName["records"][number]): number {
  return createdAt?.getTime() ?? 0;
}
