import { describeError } from "../../host/system-error.ts";
import type { HealContext } from "../execution/heal-context.ts";
import { removeMarker } from "../quarantine/remove-marker.ts";
import type { JournalAction } from "./entry.ts";
import { type HistoryRecord, isOpen } from "./history.ts";
import type { JournalId } from "./id.ts";
import { type Settled, settleQuarantine } from "./settle-quarantine.ts";
import { settleUndo } from "./settle-undo.ts";
import { readUnsettled } from "./unsettled.ts";

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
  const records = await readUnsettled(context.stateDir.journal);
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
