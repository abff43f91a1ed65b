import { isDeepStrictEqual } from "node:util";
import * as v from "valibot";
import { pause } from "../host/poll.ts";
import type { Api, WatchEvent } from "./api.ts";
import { METADATA_LIST, METADATA_WATCH, type Resource } from "./cluster-facts.ts";
import { KubeError, orKubeError, watchBackOffMs } from "./errors.ts";
import { listWithVersion } from "./list.ts";

/** A list, kept up to date by a watch. Only the reduced items are kept, never the objects. */
export type WatchedList<Item> = ReturnType<typeof watchList<unknown, Item>>;

export interface WatchedListOptions {
  /** Opens a client with the current credentials, because they are renewed while a watch runs. */
  readonly open: () => Promise<{ readonly api: Api; readonly name: string }>;
  /** Timeout for opening a watch. */
  readonly openMs: number;
  readonly onChange: () => void;
  /** The delay after consecutive failures. */
  readonly backOffMs?: typeof watchBackOffMs;
}

/**
 * The server ends a watch after five to ten minutes, as for other clients, so that they do not all reconnect at once.
 */
const WATCH_SECONDS = 300;
/** A server that has not ended the watch this long after its timeout is considered dead. */
const OVERTIME_MS = 10_000;
/** A watch that breaks sooner than this counts as another consecutive failure. */
const STEADY_MS = 10_000;

/** Far above any node: a watch that adds objects without end must not use up the node's memory. */
const MAX_KEPT = 50_000;
const MAX_KEPT_LENGTH = 32 * 1024 * 1024;

export function watchList<Parsed, Item>(
  resource: Resource<Parsed, Item>,
  { open, openMs, onChange, backOffMs = watchBackOffMs }: WatchedListOptions,
) {
  const kept = new Map<string, Item>();
  const lengths = new Map<string, number>();
  let totalLength = 0;
  const stop = new AbortController();
  const started = Promise.withResolvers<void>();
  let version: string | undefined;
  let receivedAt = Number.NEGATIVE_INFINITY;
  let trouble: { readonly since: number; readonly error: KubeError } | undefined = {
    since: Number.NEGATIVE_INFINITY,
    error: new KubeError("unreachable", `${resource.path} has not been listed yet`),
  };

  function received(): void {
    const isBack = trouble !== undefined && Number.isFinite(receivedAt);
    receivedAt = performance.now();
    trouble = undefined;
    started.resolve();
    // The data is unchanged, but it is current again.
    if (isBack) onChange();
  }

  function keep(key: string, item: Item | undefined): void {
    if (isDeepStrictEqual(kept.get(key), item)) return;
    const length = item === undefined ? 0 : key.length + JSON.stringify(item).length;
    const total = totalLength + length - (lengths.get(key) ?? 0);
    if (item === undefined) {
      kept.delete(key);
      lengths.delete(key);
    } else {
      if (kept.size >= MAX_KEPT && !kept.has(key)) {
        throw new KubeError("unreadable", `${resource.path} has more than ${MAX_KEPT} objects`);
      }
      if (total > MAX_KEPT_LENGTH) throw new KubeError("unreadable", `${resource.path} has too large objects`);
      kept.set(key, item);
      lengths.set(key, length);
    }
    totalLength = total;
    onChange();
  }

  async function list(api: Api, node: string): Promise<void> {
    const { path, query, schema, metadataOnly, keyOf, reduce } = resource;
    const accept = metadataOnly ? METADATA_LIST : undefined;
    const listed = await listWithVersion(api, { path, query: query(node), item: schema, accept });
    const now = new Map(listed.items.map((object) => [keyOf(object), reduce(object, node)]));
    for (const key of [...kept.keys()].filter((one) => !now.has(one))) keep(key, undefined);
    for (const [key, item] of now) keep(key, item);
    version = listed.resourceVersion;
    received();
  }

  async function follow(api: Api, node: string): Promise<void> {
    const seconds = Math.round(WATCH_SECONDS * (1 + Math.random()));
    const query = { ...resource.query(node), resourceVersion: version ?? "", timeoutSeconds: String(seconds) };
    const parameters = new URLSearchParams({ ...query, allowWatchBookmarks: "true" });
    const late = new AbortController();
    const giveUp = (): void => late.abort();
    let timer = setTimeout(giveUp, openMs);
    const onOpen = (): void => {
      clearTimeout(timer);
      timer = setTimeout(giveUp, seconds * 1000 + OVERTIME_MS);
      received();
    };
    const options = { onOpen, ...(resource.metadataOnly ? { accept: METADATA_WATCH } : {}) };
    const signal = AbortSignal.any([stop.signal, late.signal]);
    try {
      for await (const event of api.watch(`${resource.path}?${parameters.toString()}`, signal, options)) {
        version = take(event, node) ?? version;
        received();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** Applies the event and returns its version. */
  function take({ type, object }: WatchEvent, node: string): string | undefined {
    if (type === "ERROR") throw watchError(object);
    if (type !== "BOOKMARK") {
      const parsed = v.safeParse(resource.schema, object);
      if (!parsed.success) throw new KubeError("unreadable", `the watch of ${resource.path} sent something else`);
      keep(resource.keyOf(parsed.output), type === "DELETED" ? undefined : resource.reduce(parsed.output, node));
    }
    return versionOf(object);
  }

  /** Runs until the server ends the watch orderly. */
  async function converse(): Promise<void> {
    const { api, name: node } = await open();
    try {
      if (version === undefined) await list(api, node);
      await follow(api, node);
    } finally {
      api.close();
    }
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stop.signal.aborted) {
      const startedAt = performance.now();
      const isTakenUp = version !== undefined;
      const error = await orKubeError(converse());
      if (stop.signal.aborted) return;
      const isExpired = error instanceof KubeError && error.kind === "expired";
      // A restarted server answers 410 to every older watch: it is healthy and only needs a new list.
      const isForgotten = isExpired && isTakenUp;
      failures = isForgotten || performance.now() - startedAt > STEADY_MS ? 0 : failures + 1;
      if (error instanceof KubeError) {
        // The server accepts the watch before its first event: the kept items are as old as the previous watch.
        const since = isExpired ? Number.NEGATIVE_INFINITY : (trouble?.since ?? performance.now());
        trouble = { since, error };
        // The changes in between are lost or unreadable: a new list is needed.
        if (isExpired || error.kind === "unreadable") version = undefined;
        started.resolve();
      }
      await pause(backOffMs(failures, error instanceof KubeError ? error : undefined), stop.signal);
    }
  }

  // An internal error: the kept items must not be trusted forever because of it.
  run().catch((error: unknown) => {
    trouble = { since: Number.NEGATIVE_INFINITY, error: new KubeError("unusable", String(error), error) };
    started.resolve();
  });
  return {
    /** Resolves after the first list, successful or not. */
    started: started.promise,
    /** The items, or the error once the watch has been broken for longer than this. */
    items: (graceMs: number): readonly Item[] | KubeError =>
      trouble === undefined || performance.now() - trouble.since < graceMs ? [...kept.values()] : trouble.error,
    /** The last received version. */
    version: () => version,
    /** Milliseconds since the last message of the server. */
    silentMs: () => performance.now() - receivedAt,
    close: () => stop.abort(),
  };
}

const ObjectSchema = v.object({ metadata: v.object({ resourceVersion: v.string() }) });
const StatusSchema = v.object({ code: v.nullish(v.number()), message: v.nullish(v.string()) });

function versionOf(object: unknown): string | undefined {
  const parsed = v.safeParse(ObjectSchema, object);
  return parsed.success ? parsed.output.metadata.resourceVersion : undefined;
}

function watchError(status: unknown): KubeError {
  const parsed = v.safeParse(StatusSchema, status);
  const { code, message } = parsed.success ? parsed.output : {};
  return new KubeError(code === 410 ? "expired" : "busy", `the watch was ended: ${message ?? "without a word"}`);
}
