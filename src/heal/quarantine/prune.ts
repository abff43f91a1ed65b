import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describeError } from "../../host/source.ts";
import { syncDirectory } from "../files/durable-files.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HistoryRecord } from "../journal/history.ts";
import type { HealContext } from "../journal/journal.ts";
import { type KeepCode, listQuarantine, type QuarantineEntry } from "./inventory.ts";

/** By age, or the named ones: naming an entry is the consent to delete files without a journal entry. */
export type PruneTarget = ByAge | { readonly ids: ReadonlySet<string> };

interface ByAge {
  readonly olderThan: Date;
  /** Whether an entry may be younger than its date, because the clock may have been wrong when it was created. */
  readonly mayBeYounger?: (record: HistoryRecord) => boolean;
}

export type KeptEntry = QuarantineEntry & { readonly keep: KeepCode };

export interface PruneChoice {
  readonly prune: readonly QuarantineEntry[];
  /** Selected, but still needed. */
  readonly kept: readonly KeptEntry[];
}

export interface Pruned {
  readonly pruned: readonly QuarantineEntry[];
  readonly kept: readonly KeptEntry[];
  readonly failed: readonly { readonly id: JournalId; readonly reason: string }[];
}

export function choosePrunable(entries: readonly QuarantineEntry[], target: PruneTarget): PruneChoice {
  const isNamed = "ids" in target;
  const meant = entries.filter(
    ({ id, since, record }) =>
      record?.state === "pruned" || (isNamed ? target.ids.has(id) : isOverdue(since, record, target)),
  );
  const isKept = (entry: QuarantineEntry): entry is KeptEntry =>
    entry.keep !== undefined && !(isNamed && entry.keep !== "unfinished");
  return { prune: meant.filter((entry) => !isKept(entry)), kept: meant.filter(isKept) };
}

function isOverdue(since: Date, record: HistoryRecord | undefined, { olderThan, mayBeYounger }: ByAge): boolean {
  return since < olderThan && !(record !== undefined && mayBeYounger?.(record));
}

/**
 * Deletes entries permanently. The journal entry comes first: from then on the entry counts as deleted, and the next
 * prune removes what a crash leaves of it. The caller holds the session, so nothing is being moved meanwhile.
 */
export async function pruneQuarantine(context: HealContext, target: PruneTarget): Promise<Pruned> {
  const { stateDir, journal } = context;
  const { prune, kept } = choosePrunable(await listQuarantine(stateDir), target);
  const outcomes = await Promise.all(
    prune.map(async (entry) => {
      const { id } = entry;
      const written = await journal.pruned(id);
      if (!written.ok) return { entry, reason: written.refusal.message };
      try {
        await rm(join(stateDir.quarantine, id), { recursive: true, force: true });
        return { entry };
      } catch (thrown) {
        return { entry, reason: describeError(thrown) };
      }
    }),
  );
  if (outcomes.length > 0) await syncDirectory(stateDir.quarantine);
  return {
    pruned: outcomes.flatMap(({ entry, reason }) => (reason === undefined ? [entry] : [])),
    kept,
    failed: outcomes.flatMap(({ entry: { id }, reason }) => (reason === undefined ? [] : [{ id, reason }])),
  };
}
