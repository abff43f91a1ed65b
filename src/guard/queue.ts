import { statSync } from "node:fs";
import { join } from "node:path";
import * as v from "valibot";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import type { DecisionCode } from "./decide.ts";
import { type AttachmentKey, fileNameOf, keysIn, type Moment, removeFile, writeFileDurably } from "./state-files.ts";

/** A node has at most a few hundred pods: more than that is a fault that waiting does not heal. */
export const QUEUE_CAP = 256;

const momentSchema = v.object({ boot: v.string(), uptimeSeconds: v.number() });

const queuedDelSchema = v.object({
  version: v.literal(1),
  queuedAt: v.pipe(v.string(), v.isoTimestamp()),
  /** The plugin as it was found; it is searched again in CNI_PATH when the DEL is repeated. */
  path: v.string(),
  environment: v.record(v.string(), v.string()),
  /** Identifies the network namespace at CNI_NETNS, whose path may name another one later. */
  netns: v.optional(v.string()),
  /** Network configurations in the order in which they are tried: what the runtime gave, then what ADD had. */
  configs: v.array(v.string()),
  code: v.string(),
  /** The plugin's own words, of the last failure. */
  words: v.string(),
  attempts: v.number(),
  lastAttempt: v.optional(
    v.object({
      at: momentSchema,
      /** It did not answer: it is asked again as soon as it does. */
      isAway: v.boolean(),
    }),
  ),
});

/** A DEL that the runtime believes done, and that is repeated until the plugin has done it. */
export type QueuedDel = v.InferOutput<typeof queuedDelSchema>;

export type QueueEntry = { readonly key: AttachmentKey } & (
  | { readonly kind: "queued"; readonly del: QueuedDel }
  | { readonly kind: "unreadable"; readonly reason: string }
);

/** Unreadable entries are part of it: nothing leaves the queue unseen. */
export function readQueue(stateDir: string): readonly QueueEntry[] {
  return keysIn(join(stateDir, "queue")).flatMap((key) => {
    const entry = readEntry(stateDir, key);
    return entry === undefined ? [] : [entry];
  });
}

function readEntry(stateDir: string, key: AttachmentKey): QueueEntry | undefined {
  const file = readRegularFile(pathOf(stateDir, key));
  if (file.kind === "gone") return undefined;
  if (file.kind !== "content") return { key, kind: "unreadable", reason: file.reason };
  const parsed = v.safeParse(queuedDelSchema, parseJson(file.text));
  if (parsed.success) return { key, kind: "queued", del: parsed.output };
  return { key, kind: "unreadable", reason: file.text === "" ? "is empty" : "does not parse" };
}

export interface NewQueuedDel {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly configs: readonly string[];
  readonly code: DecisionCode;
  readonly words: string;
}

/** The same DEL again replaces the one before. Throws if it cannot be written. */
export function enqueue(stateDir: string, key: AttachmentKey, del: NewQueuedDel): "queued" | "full" {
  const waiting = keysIn(join(stateDir, "queue"));
  const isKnown = waiting.some((one) => fileNameOf(one) === fileNameOf(key));
  if (!isKnown && waiting.length >= QUEUE_CAP) return "full";
  const netns = netnsAt(del.environment["CNI_NETNS"]);
  store(stateDir, key, {
    ...del,
    version: 1,
    queuedAt: new Date().toISOString(),
    environment: { ...del.environment },
    netns,
    configs: [...new Set(del.configs)],
    attempts: 0,
  });
  return "queued";
}

export function noteAttempt(
  stateDir: string,
  key: AttachmentKey,
  del: QueuedDel,
  attempt: { readonly words: string; readonly isAway: boolean; readonly at: Moment },
): void {
  const { words, isAway, at } = attempt;
  store(stateDir, key, { ...del, words, attempts: del.attempts + 1, lastAttempt: { at, isAway } });
}

export function dequeue(stateDir: string, key: AttachmentKey): void {
  removeFile(pathOf(stateDir, key));
}

/**
 * The network namespace that a repeated DEL gets: the same one, or none. A path below /proc belongs to the process that has
 * that pid now, which may be in the namespace of a running pod.
 */
export function netnsForReplay({ environment, netns }: Pick<QueuedDel, "environment" | "netns">): string {
  const path = environment["CNI_NETNS"] ?? "";
  return netns !== undefined && netnsAt(path) === netns ? path : "";
}

function netnsAt(path: string | undefined): string | undefined {
  if (path === undefined || path === "" || path.startsWith("/proc/")) return undefined;
  const { dev, ino } = statSync(path, { bigint: true, throwIfNoEntry: false }) ?? {};
  return ino === undefined ? undefined : `${dev}:${ino}`;
}

function store(stateDir: string, key: AttachmentKey, del: QueuedDel): void {
  writeFileDurably(pathOf(stateDir, key), JSON.stringify(del));
}

function pathOf(stateDir: string, key: AttachmentKey): string {
  return join(stateDir, "queue", fileNameOf(key));
}
