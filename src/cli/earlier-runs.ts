import { setTimeout as sleep } from "node:timers/promises";
import { isOpen, readHistory } from "../heal/history.ts";
import type { Recovery } from "../heal/recover.ts";
import { openHealSession } from "../heal/session.ts";
import { findStateDir } from "../heal/state-dir.ts";
import type { Io } from "./io.ts";
import type { NodeSettings } from "./settings.ts";
import { sessionOptions } from "./state.ts";

/**
 * Finishes what a killed run left open although there is nothing else to do: a file half way to quarantine, a marker in a
 * plugin's cache. True when something was settled, and the node is worth another look.
 */
export async function settledEarlierRuns(settings: NodeSettings, io: Io): Promise<boolean> {
  const options = sessionOptions(settings);
  const found = await findStateDir(options.stateDir, options.uid);
  if (!found.ok || found.value === undefined) return false;
  const { records } = await readHistory(found.value.journal);
  if (!records.some(isOpen)) return false;
  const session = await openHealSession({ ...options, sleep });
  if (!session.ok) {
    io.stderr(`What an earlier run left open stays so: ${session.refusal.message} ${session.refusal.next}\n`);
    return false;
  }
  const { recoveries } = session.value;
  await session.value.close();
  tellRecoveries(recoveries, io);
  return recoveries.some(({ how }) => how !== "unsettled");
}

export function tellRecoveries(recoveries: readonly Recovery[], io: Io): void {
  for (const { id, kind, how, detail } of recoveries) {
    io.stderr(`An earlier run was interrupted at ${kind} (${id}): ${how}. ${detail}\n`);
  }
}
