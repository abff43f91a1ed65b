import { unlink } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { hasContent, lookAt } from "./file-identity.ts";
import type { HealContext } from "./heal-context.ts";
import { holdDirectory } from "./held-directory.ts";
import { type HistoryRecord, isOpen, readHistory } from "./history.ts";
import type { JournalAction } from "./journal-entry.ts";
import type { JournalId } from "./journal-id.ts";
import { type Settled, settleQuarantine } from "./settle-quarantine.ts";
import { settleUndo } from "./settle-undo.ts";
import { describeError } from "./system-error.ts";

/** What a run found begun and not ended, and what it made of it. */
export interface Recovery extends Settled {
  readonly id: JournalId;
  readonly kind: JournalAction["kind"];
}

/**
 * Settles what an earlier run began and did not end, because it was killed or the power went. The caller holds the run
 * lock, so nothing that is open can still be under way.
 */
export async function recoverOpenEntries(context: HealContext): Promise<readonly Recovery[]> {
  const { records } = await readHistory(context.stateDir.journal);
  const recoveries: Recovery[] = [];
  for (const record of records.filter(isOpen)) {
    const settled = await settle(context, record);
    if (settled.how !== "unsettled") await context.journal.recovered(record.id, settled.how, settled.detail);
    recoveries.push({ id: record.id, kind: record.action.kind, ...settled });
  }
  return recoveries;
}

async function settle(context: HealContext, record: HistoryRecord): Promise<Settled> {
  const { id, action } = record;
  try {
    switch (action.kind) {
      case "quarantine-file":
        return await (record.state === "undoing" ? settleUndo : settleQuarantine)(context, id, action);
      case "write-marker":
        return await removeMarker(context.hostRoot, action);
      default:
        return { how: "interrupted", detail: "Whether it took effect, the scan of this run tells." };
    }
  } catch (thrown) {
    return { how: "unsettled", detail: `Could not look: ${describeError(thrown)}.` };
  }
}

/** multus never removes the marker it is given, and a later pod must not meet it: gone, unless somebody rewrote it. */
export async function removeMarker(
  hostRoot: string,
  marker: Pick<Extract<JournalAction, { kind: "write-marker" }>, "path" | "sha256">,
): Promise<Settled> {
  const parent = await holdDirectory(hostRoot, dirname(marker.path));
  if (!parent.ok) return { how: "unsettled", detail: parent.refusal.message };
  const absent = { how: "rolled-back", detail: `The marker ${marker.path} is not there.` } as const;
  if (parent.value === undefined) return absent;
  try {
    const entry = parent.value.entry(basename(marker.path));
    const found = await lookAt(entry);
    if (found.what === "nothing") return absent;
    const ours =
      found.what === "file" && (await hasContent(entry, { sha256: marker.sha256, size: found.identity.size }));
    if (!ours) return { how: "interrupted", detail: `${marker.path} is no longer our marker and was left as it is.` };
    await unlink(entry);
    await parent.value.sync();
    return { how: "rolled-back", detail: `The marker ${marker.path} was removed.` };
  } finally {
    await parent.value.close();
  }
}
