import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { readHistory } from "../../src/heal/journal/reader.ts";
import { stateDirLayout } from "../../src/heal/state/state-layout.ts";
import type { LabNode } from "../node.ts";

/** Quarantined files without a journal entry. */
export async function unaccountedFor(node: LabNode, stateDir = "/var/lib/unghost"): Promise<readonly string[]> {
  const { journal, quarantine } = stateDirLayout(node.path(stateDir));
  if (!existsSync(quarantine)) return [];
  const known = new Set<string>((await readHistory(journal)).records.map(({ id }) => id));
  const strays = readdirSync(quarantine).filter((id) => !known.has(id));
  return strays.map((id) => `${join(quarantine, id)} is in no journal`);
}
