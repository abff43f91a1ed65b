import { dirname, join } from "node:path";
import { statsOf } from "../host/safe-fs.ts";
import { readAttachment } from "./attachment.ts";
import { networkOf, recordedConfig } from "./config.ts";
import { entriesFor, updateEntries } from "./install/entries.ts";
import { pluginDirsOn } from "./install/install.ts";
import { readReceipt } from "./install/receipt.ts";
import { logDecision, podOfArgs } from "./log.ts";
import { enqueue } from "./queue.ts";
import { replayQueue } from "./replay.ts";
import { hasRuntimeResult } from "./runtime-result.ts";
import { fileNameOf, keysIn, type Moment, momentNow, removeFile } from "./state-files.ts";

/** What the agent has done on the host at intervals: new plugins get an entry, and queued DELs are repeated. */
export async function keepGuard(root: string, stateDir: string): Promise<void> {
  const receipt = readReceipt(root);
  if (receipt !== undefined) updateEntries(root, entriesFor(root, pluginDirsOn(root), receipt.mode), receipt.mode);
  queueUndone(stateDir, Date.now(), momentNow());
  await replayQueue(stateDir);
  dropOldRecords(root, stateDir, Date.now());
}

/** After a boot the runtime sends the DELs of what died with the last one. */
const RUNTIMES_TURN_MS = 600_000;

/**
 * A network namespace goes after the DELs of its sandbox. A completed ADD with no DEL since is one that never came: the
 * runtime skipped it, or multus answered for its delegate. A path below /proc or a directory that is not there proves nothing.
 */
export function queueUndone(stateDir: string, nowMs: number, { uptimeSeconds }: Moment): void {
  if (uptimeSeconds * 1000 < RUNTIMES_TURN_MS) return;
  for (const key of keysIn(join(stateDir, "attachments"))) {
    const path = join(stateDir, "attachments", fileNameOf(key));
    const record = readAttachment(path);
    if (record.kind !== "read" || record.attachment.phase !== "completed") continue;
    const { attachment } = record;
    const netns = attachment.environment["CNI_NETNS"] ?? "";
    const isGone = netns.startsWith("/") && !netns.startsWith("/proc/") && statsOf(netns) === undefined;
    const ageMs = nowMs - (statsOf(path)?.mtimeMs ?? nowMs);
    if (!isGone || statsOf(dirname(netns)) === undefined || ageMs < RUNTIMES_TURN_MS) continue;
    const { path: plugin, environment, config } = attachment;
    const configs = [recordedConfig(attachment, "") ?? config];
    const code = "del-never-came";
    const queued = enqueue(stateDir, key, { path: plugin, environment, configs, code, words: "no DEL came" });
    if (queued === "queued") removeFile(path);
    logDecision(stateDir, { ...key, code, did: queued, pod: podOfArgs(environment["CNI_ARGS"]) });
  }
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
