import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { runChild } from "../host/child.ts";
import { flockCommand, LOCK_BUSY } from "../host/system-call.ts";
import { forgetFailures } from "./failures.ts";
import { logDecision, podOfArgs } from "./log.ts";
import { dequeue, netnsForReplay, noteAttempt, type QueueEntry, readQueue } from "./queue.ts";
import { findPlugin, runPlugin } from "./run-plugin.ts";
import { type AttachmentKey, markReleased, momentNow, secondsBetween } from "./state-files.ts";

const TIMEOUT_MS = 60_000;
const LOCK_MS = 5000;
const FIRST_PAUSE_S = 5;
const LONGEST_PAUSE_S = 300;

export interface ReplayResult {
  readonly done: number;
  readonly waiting: number;
}

/**
 * Repeats queued DELs, one at a time, each with its own record: never a sweep. `working` is a plugin that has just
 * answered. Undefined if another process does it already.
 */
export async function replayQueue(stateDir: string, working?: string): Promise<ReplayResult | undefined> {
  const lock = openSync(
    join(stateDir, "replay.lock"),
    constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    const { end } = await runChild(flockCommand("exclusive"), { stdinFd: lock, timeoutMs: LOCK_MS, env: process.env });
    if (end.kind !== "exited" || end.code === LOCK_BUSY) return undefined;
    return await replayAll(stateDir, working);
  } finally {
    closeSync(lock);
  }
}

async function replayAll(stateDir: string, working: string | undefined): Promise<ReplayResult> {
  const answering = new Set(working === undefined ? [] : [working]);
  const away = new Set<string>();
  const entries = readQueue(stateDir).toSorted((one, other) => ageRank(one) - ageRank(other));
  const untried = new Set(entries.filter((entry) => entry.kind === "queued"));
  const next = (): Queued | undefined =>
    [...untried].find((entry) => !away.has(entry.key.plugin) && isDue(entry, answering.has(entry.key.plugin)));
  let done = 0;
  // From the start after each one: those of a plugin that has just answered have become due.
  for (let entry = next(); entry !== undefined; entry = next()) {
    untried.delete(entry);
    const end = await replay(stateDir, entry);
    if (end === "done") done++;
    if (end === "away") away.add(entry.key.plugin);
    else answering.add(entry.key.plugin);
  }
  return { done, waiting: entries.length - done };
}

type Queued = Extract<QueueEntry, { kind: "queued" }>;

async function replay(stateDir: string, { key, del }: Queued): Promise<"done" | "failed" | "away"> {
  const environment: Record<string, string> = {
    ...del.environment,
    CNI_COMMAND: "DEL",
    CNI_NETNS: netnsForReplay(del),
  };
  const path = findPlugin(key.plugin, environment["CNI_PATH"], del.path);
  let failure = { kind: "other", words: "it has no network configuration" };
  for (const config of del.configs) {
    const end = await runPlugin({ path, environment, config, timeoutMs: TIMEOUT_MS });
    if (end === "succeeded" || end.kind === "state-gone") {
      finish(stateDir, key);
      const words = end === "succeeded" ? undefined : end.words;
      const pod = podOfArgs(del.environment["CNI_ARGS"]);
      logDecision(stateDir, { ...key, code: "replayed", did: "released", pod, words });
      return "done";
    }
    failure = end;
    if (end.kind !== "other") break;
  }
  const isAway = failure.kind !== "other";
  noteAttempt(stateDir, key, del, { words: failure.words, isAway, at: momentNow() });
  return isAway ? "away" : "failed";
}

function finish(stateDir: string, key: AttachmentKey): void {
  dequeue(stateDir, key);
  forgetFailures(stateDir, key);
  markReleased(stateDir, key);
}

function isDue({ del }: Queued, isAnswering: boolean): boolean {
  const { lastAttempt, attempts } = del;
  if (lastAttempt === undefined || (isAnswering && lastAttempt.isAway)) return true;
  const now = momentNow();
  const pause = Math.min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (attempts - 1));
  return now.boot !== lastAttempt.at.boot || secondsBetween(lastAttempt.at, now) >= pause;
}

function ageRank(entry: QueueEntry): number {
  return entry.kind === "queued" ? Date.parse(entry.del.queuedAt) : 0;
}
