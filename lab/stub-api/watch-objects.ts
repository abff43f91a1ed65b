import type { ServerResponse } from "node:http";
import { type Address, isListed, kindOf } from "./address.ts";
import { type ApiObject, statusOf } from "./api-object.ts";
import { matches, type Selector } from "./selectors.ts";
import type { Change, Store } from "./store.ts";

export interface WatchQuery {
  readonly selector: Selector;
  /** Empty or `0`: existing objects come first, as if they had just been created. */
  readonly resourceVersion: string;
  /** Existing objects come first and end with a bookmark: how client-go starts a watch since 0.35. */
  readonly initialEvents: boolean;
  /** The interval of bookmarks; 0 for never. */
  readonly bookmarkMs: number;
  /** When the server ends it; 0 for never. */
  readonly timeoutMs: number;
}

/** Writes one line per event, until either side ends it. */
export function watch(store: Store, address: Address, query: WatchQuery, response: ServerResponse): void {
  const { selector, resourceVersion, initialEvents, bookmarkMs, timeoutMs } = query;
  const send = (type: string, object: object): void => {
    response.write(`${JSON.stringify({ type, object })}\n`);
  };
  const sendChange = (change: Change): void => {
    const [type, object] = isListed(address, change.path) ? eventOf(change, selector) : [];
    if (type !== undefined && object !== undefined) send(type, object);
  };
  response.writeHead(200, { "content-type": "application/json" });
  response.flushHeaders();

  const isFromNow = resourceVersion === "" || resourceVersion === "0" || initialEvents;
  const missed = isFromNow ? [] : store.since(Number(resourceVersion));
  if (missed === undefined) {
    const message = `too old resource version: ${resourceVersion} (${store.version()})`;
    send("ERROR", statusOf({ code: 410, reason: "Expired", message }));
    response.end();
    return;
  }
  if (isFromNow) {
    for (const [path, after] of store.entries()) sendChange({ version: 0, path, after });
  }
  for (const change of missed) sendChange(change);

  const unsubscribe = store.onChange(sendChange);
  const mark = (more: object = {}): void => {
    const metadata = { resourceVersion: String(store.version()), creationTimestamp: null, ...more };
    send("BOOKMARK", { ...kindOf(address), metadata });
  };
  if (initialEvents) mark({ annotations: { "k8s.io/initial-events-end": "true" } });
  const bookmarks = bookmarkMs === 0 ? undefined : setInterval(() => mark(), bookmarkMs);
  const ending = timeoutMs === 0 ? undefined : setTimeout(() => response.end(), timeoutMs);
  response.once("close", () => {
    unsubscribe();
    clearInterval(bookmarks);
    clearTimeout(ending);
  });
}

/** An object that starts or stops to match the selector is added or deleted in a watch with that selector. */
function eventOf({ version, before, after }: Change, selector: Selector): readonly [string, ApiObject] | readonly [] {
  const was = before !== undefined && matches(before, selector);
  if (after !== undefined && matches(after, selector)) return [was ? "MODIFIED" : "ADDED", after];
  if (!was) return [];
  const last = after ?? before;
  return ["DELETED", { ...last, metadata: { ...last.metadata, resourceVersion: String(version) } }];
}
