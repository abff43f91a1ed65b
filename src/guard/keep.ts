import { utimesSync } from "node:fs";
import { dirname, join } from "node:path";
import { entriesIn, statsOf } from "../host/safe-fs.ts";
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
 * runtime skipped it, or multus answered for its delegate. One that a power cut ended may have allocated as much. A path
 * below /proc or a directory that is not there proves nothing.
 */
export function queueUndone(stateDir: string, nowMs: number, { boot, uptimeSeconds }: Moment): void {
  if (uptimeSeconds * 1000 < RUNTIMES_TURN_MS) return;
  for (const key of keysIn(join(stateDir, "attachments"))) {
    const path = join(stateDir, "attachments", fileNameOf(key));
    const record = readAttachment(path);
    if (record.kind !== "read") continue;
    const { attachment } = record;
    if (attachment.phase !== "completed" && attachment.boot === boot) continue;
    const netns = attachment.environment["CNI_NETNS"] ?? "";
    const isGone = netns.startsWith("/") && !netns.startsWith("/proc/") && statsOf(netns) === undefined;
    if (!isGone || statsOf(dirname(netns)) === undefined || ageOf(path, nowMs) < RUNTIMES_TURN_MS) continue;
    const { path: plugin, environment, config } = attachment;
    const configs = [recordedConfig(attachment, "") ?? config];
    const code = "del-never-came";
    const queued = enqueue(stateDir, key, { path: plugin, environment, configs, code, words: "no DEL came" });
    if (queued === "queued") removeFile(path);
    logDecision(stateDir, { ...key, code, did: queued, pod: podOfArgs(environment["CNI_ARGS"]) });
  }
}

/** A record from the future is one from before a step of the clock: its age counts from now. */
function ageOf(path: string, nowMs: number): number {
  const ageMs = nowMs - (statsOf(path)?.mtimeMs ?? nowMs);
  if (ageMs < 0) utimesSync(path, nowMs / 1000, nowMs / 1000);
  return ageMs;
}

const KEPT_MS = 24 * 3600 * 1000;

/**
 * Records whose DEL never came to the guard: the runtime did not send it, or unghost called the plugin itself. A running
 * pod has a result of the runtime, and a queued DEL has its own copy.
 */
export function dropOldRecords(root: string, stateDir: string, nowMs: number): void {
  for (const directory of ["attachments", "failures", "queue"]) dropDrafts(join(stateDir, directory), nowMs);
  for (const directory of ["attachments", "released", "failures"]) {
    for (const key of keysIn(join(stateDir, directory))) {
      const path = join(stateDir, directory, fileNameOf(key));
      if (ageOf(path, nowMs) < KEPT_MS) continue;
      const record = readAttachment(path);
      const network = record.kind === "read" ? networkOf(record.attachment.config) : undefined;
      if (!hasRuntimeResult(root === "/" ? "" : root, network, key.container, key.interface)) removeFile(path);
    }
  }
}

/** Of a launcher or a decision that was killed while it wrote. */
function dropDrafts(directory: string, nowMs: number): void {
  for (const { name, kind } of entriesIn(directory)) {
    const path = join(directory, name);
    if (kind === "file" && name.startsWith(".") && ageOf(path, nowMs) >= KEPT_MS) removeFile(path);
  }
}
