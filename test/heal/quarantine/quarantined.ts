import { join } from "node:path";
import type { JournalId } from "../../../src/heal/journal/entry.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, WHY } from "../heal-fixture.ts";

/** A cache file that was moved to quarantine; its content is its name. */
export async function quarantined(
  shop: HealFixture,
  name: string,
): Promise<{ readonly path: string; readonly id: JournalId; readonly file: string }> {
  const { path, expected } = await shop.put(name, name);
  const outcome = await quarantineFile(shop, { ...WHY, path, expected });
  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  return { path, id: outcome.id, file: join(shop.stateDir.quarantine, outcome.id, name) };
}
