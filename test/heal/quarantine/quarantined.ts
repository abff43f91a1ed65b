import { join } from "node:path";
import type { JournalId } from "../../../src/heal/journal/entry.ts";
import { quarantineFile } from "../../../src/heal/quarantine/quarantine.ts";
import { type HealFixture, WHY } from "../heal-fixture.ts";

/** A cache file that was moved to quarantine; its content is its name. */
export async function quarantined(
  fixture: HealFixture,
  name: string,
): Promise<{ readonly path: string; readonly id: JournalId; readonly file: string }> {
  const { path, expected } = await fixture.put(name, name);
  const outcome = await quarantineFile(fixture, { ...WHY, path, expected });
  if (outcome.outcome !== "healed") throw new Error(outcome.refusal.message);
  return { path, id: outcome.id, file: join(fixture.stateDir.quarantine, outcome.id, name) };
}
