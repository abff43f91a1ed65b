import { entriesFor, syncEntries } from "./install/entries.ts";
import { pluginDirsOn } from "./install/install.ts";
import { readReceipt } from "./install/receipt.ts";
import { replayQueue } from "./replay.ts";

/** What the agent has done on the host at intervals: new plugins get an entry, and queued DELs are repeated. */
export async function keepGuard(root: string, stateDir: string): Promise<void> {
  const receipt = readReceipt(root);
  if (receipt !== undefined) syncEntries(root, entriesFor(root, pluginDirsOn(root), receipt.mode), receipt.mode);
  await replayQueue(stateDir);
}
