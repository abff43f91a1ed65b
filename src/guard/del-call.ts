import { join } from "node:path";
import { procText } from "../host/proc.ts";
import { statsOf } from "../host/safe-fs.ts";
import { describeError } from "../host/source.ts";
import { type AttachmentRead, readAttachment } from "./attachment.ts";
import { networkOf, recordedConfig } from "./config.ts";
import { type Decision, decide, type FailedDel, hasCompleted } from "./decide.ts";
import { countFailure, forgetFailures, secondsFailing } from "./failures.ts";
import { logDecision, podOfArgs } from "./log.ts";
import { classifyFailure, type PluginEnd } from "./plugin-failure.ts";
import { enqueue } from "./queue.ts";
import { runPlugin } from "./run-plugin.ts";
import { hasRuntimeResult } from "./runtime-result.ts";
import { type AttachmentKey, fileNameOf, isReleased, markReleased, momentNow } from "./state-files.ts";

/** Open files that the launcher hands over: src/guard/launcher/decide.c has the same numbers. */
const HANDED_OVER = { config: "/proc/self/fd/3", stdout: "/proc/self/fd/4", stderr: "/proc/self/fd/5" } as const;
const MAX_BYTES = 1024 * 1024;

const RETRY_MS = 60_000;

/** A DEL that its plugin has failed. */
export interface DelCall {
  readonly stateDir: string;
  /** Where the node's files are: the runtime's results are below it. */
  readonly root: string;
  readonly plugin: string;
  /** The plugin's path; empty if it was not found. */
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly config: string;
  readonly end: PluginEnd;
}

export function handedOver(stateDir: string, plugin: string, path: string, how: string): DelCall {
  const entries = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    stateDir,
    root: "",
    plugin,
    path,
    environment: Object.fromEntries(entries),
    config: procText(HANDED_OVER.config, MAX_BYTES),
    end: { how, stdout: procText(HANDED_OVER.stdout, MAX_BYTES), stderr: procText(HANDED_OVER.stderr, MAX_BYTES) },
  };
}

/** Decides, and does what was decided. Only `succeed` and `queue` give the runtime success. */
export async function handleFailedDel(call: DelCall): Promise<Decision> {
  const { stateDir, plugin, environment, config } = call;
  const key: AttachmentKey = {
    container: environment["CNI_CONTAINERID"] ?? "",
    interface: environment["CNI_IFNAME"] ?? "",
    plugin,
  };
  const record = readAttachment(join(stateDir, "attachments", fileNameOf(key)));
  const failure = classifyFailure(call.end);
  const now = momentNow();
  const failures = countFailure(stateDir, key, now);
  const known = {
    failure,
    record,
    hasRuntimeResult: hasRuntimeResult(call.root, networkOf(config), key.container, key.interface),
    failures: failures.count,
    secondsSinceFirst: secondsFailing(failures, now),
    isReleased: isReleased(stateDir, key),
    isQueued: statsOf(join(stateDir, "queue", fileNameOf(key))) !== undefined,
  };
  const recorded = record.kind === "read" ? recordedConfig(record.attachment, config) : undefined;
  const retry = await retryWith(call, recorded, failure.kind === "other");
  const del: FailedDel = retry === undefined ? known : { ...known, retry };
  const decided = decide(del);
  const decision = decided.do === "queue" ? queueIt(call, key, decided, del, recorded) : decided;
  if (decision.do === "succeed" && decision.code !== "add-never-completed-queue-full") markReleased(stateDir, key);
  if (decision.do !== "pass-on") forgetFailures(stateDir, key);
  logDecision(stateDir, {
    ...key,
    code: decision.code,
    did: decision.do,
    pod: podOfArgs(environment["CNI_ARGS"]),
    words: failure.words,
    record: describeRecord(record),
  });
  return decision;
}

async function retryWith(call: DelCall, recorded: string | undefined, isWorth: boolean): Promise<FailedDel["retry"]> {
  if (recorded === undefined || !isWorth) return undefined;
  return await runPlugin({ path: call.path, environment: call.environment, config: recorded, timeoutMs: RETRY_MS });
}

/** What cannot be queued is passed on: a success would be an unreported leak. */
function queueIt(
  { stateDir, path, environment, config }: DelCall,
  key: AttachmentKey,
  { code }: Decision,
  del: FailedDel,
  recorded: string | undefined,
): Decision {
  const configs = recorded === undefined ? [config] : [config, recorded];
  try {
    const queued = enqueue(stateDir, key, { path, environment, configs, code, words: del.failure.words });
    if (queued === "queued") return { do: "queue", code };
    // A pod whose network was never set up must not be held by those before it; the log and `cni status` name it.
    return hasCompleted(del)
      ? { do: "pass-on", code: "queue-full" }
      : { do: "succeed", code: "add-never-completed-queue-full" };
  } catch (error) {
    process.stderr.write(`unghost CNI guard: the DEL could not be queued: ${describeError(error)}\n`);
    return { do: "pass-on", code: "queue-not-writable" };
  }
}

function describeRecord(record: AttachmentRead): string {
  switch (record.kind) {
    case "read":
      return record.attachment.phase;
    case "unreadable":
      return `unreadable (${record.error})`;
    case "unparsable":
      return "does not parse";
    case "missing":
      return "missing";
  }
}
