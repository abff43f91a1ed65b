import { openHealSession, type SessionOptions } from "../execution/session.ts";
import { findStateDir } from "../files/state-dir.ts";
import { type Outcome, ok } from "../outcome.ts";
import { isOpen } from "./history.ts";
import type { Recovery } from "./recover.ts";
import { readUnsettled } from "./unsettled.ts";

/**
 * Finishes what a killed run left open although there is nothing else to do: a file half way to quarantine, a marker in a
 * plugin's cache. Gives what was settled; nothing where nothing was open.
 */
export async function settleEarlierRuns(options: SessionOptions): Promise<Outcome<readonly Recovery[]>> {
  const found = await findStateDir(options.stateDir, options.uid);
  if (!found.ok || found.value === undefined) return ok([]);
  const records = await readUnsettled(found.value.journal);
  if (!records.some(isOpen)) return ok([]);
  const session = await openHealSession(options);
  if (!session.ok) return session;
  const { recoveries } = session.value;
  await session.value.close();
  return ok(recoveries);
}
