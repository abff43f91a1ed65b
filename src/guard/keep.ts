import { join } from "node:path";
import { statsOf } from "../host/safe-fs.ts";
import { readAttachment } from "./attachment.ts";
import { networkOf } from "./config.ts";
import { entriesFor, syncEntries } from "./install/entries.ts";
import { pluginDirsOn } from "./install/install.ts";
import { readReceipt } from "./install/receipt.ts";
import { replayQueue } from "./replay.ts";
import { hasRuntimeResult } from "./runtime-result.ts";
import { fileNameOf, keysIn, removeFile } from "./state-files.ts";

/** What the agent has done on the host at intervals: new plugins get an entry, and queued DELs are repeated. */
export async function keepGuard(root: string, stateDir: string): Promise<void> {
  const receipt = readReceipt(root);
  if (receipt !== undefined) syncEntries(root, entriesFor(root, pluginDirsOn(root), receipt.mode), receipt.mode);
  await replayQueue(stateDir);
  dropOldRecords(root, stateDir, Date.now());
}

const KEPT_MS = 24 * 3600 * 1000;

/**
 * Records whose DEL never came to the guard: the runtime did not send it, or unghost called the plugin itself. A running
 * pod has a result of the runtime, and a queued DEL has its own copy.
 */
export function dropOldRecords(root: string, stateDir: string, nowMs: number): void {
  for (const directory of ["attachments", "failures"]) {
    for (const key of keysIn(join(stateDir, directory))) {
      const path = join(stateDir, directory, fileNameOf(key));
      const changedAtMs = statsOf(path)?.mtimeMs ?? nowMs;
      if (nowMs - changedAtMs < KEPT_MS) continue;
      const record = readAttachment(path);
      const network = record.kind === "read" ? networkOf(record.attachment.config) : undefined;
      if (!hasRuntimeResult(root === "/" ? "" : root, network, key.container, key.interface)) removeFile(path);
    }
  }
}
