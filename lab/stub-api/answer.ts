import type { ServerResponse } from "node:http";
import type { Address } from "./address.ts";
import { type Refusal, statusOf } from "./api-object.ts";
import { remove } from "./delete-object.ts";
import { list, type ObjectList } from "./list-objects.ts";
import { wrongField } from "./selectors.ts";
import type { Store } from "./store.ts";
import { watch } from "./watch-objects.ts";
import { create, missing, patch, replace } from "./write-object.ts";

export interface Asked {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly contentType: string;
  readonly body: unknown;
  readonly bookmarkMs: number;
}

/** An answer, or a function that streams one. */
export type Reply = { readonly code: number; readonly body: unknown } | ((response: ServerResponse) => void);

export function answer(store: Store, address: Address | undefined, asked: Asked): Reply {
  if (address === undefined) {
    return refused({ code: 404, reason: "NotFound", message: "the server could not find the requested resource" });
  }
  const { method, body, contentType } = asked;
  if (method === "GET") return address.name === undefined ? answerList(store, address, asked) : one(store, address);
  const written = write(store, address, { method, body, contentType });
  return "object" in written ? { code: written.code, body: written.object } : refused(written);
}

/** A body of an unsupported content type: it is answered with the current object, and not stored. */
export function answerUnread(store: Store, address: Address | undefined): Reply {
  return address?.name === undefined
    ? refused({ code: 415, reason: "UnsupportedMediaType", message: "the body is not JSON" })
    : one(store, address);
}

function write(
  store: Store,
  address: Address,
  { method, body, contentType }: Pick<Asked, "method" | "body" | "contentType">,
) {
  if (method === "POST") return create(store, address, body);
  if (method === "PUT") return replace(store, address, body);
  if (method === "DELETE") return remove(store, address, body);
  return patch(store, address, body, contentType);
}

function one(store: Store, address: Address): Reply {
  const object = store.get(address.path);
  return object === undefined ? refused(missing(address)) : { code: 200, body: object };
}

function answerList(store: Store, address: Address, { query, accept, bookmarkMs }: Asked): Reply {
  const selector = { fields: query.get("fieldSelector") ?? "", labels: query.get("labelSelector") ?? "" };
  const wrong = wrongField(address.resource, selector.fields);
  if (wrong !== undefined) return refused(wrong);
  const resourceVersion = query.get("resourceVersion") ?? "";
  if (["true", "1"].includes(query.get("watch") ?? "")) {
    const hasBookmarks = query.get("allowWatchBookmarks") === "true";
    const timeoutMs = Number(query.get("timeoutSeconds") ?? 0) * 1000;
    const initialEvents = query.get("sendInitialEvents") === "true";
    const watching = { selector, resourceVersion, initialEvents, bookmarkMs: hasBookmarks ? bookmarkMs : 0, timeoutMs };
    return (response) => watch(store, address, watching, response);
  }
  const limit = Number(query.get("limit") ?? 0);
  const found = list(store, address, { selector, limit, continue: query.get("continue") ?? "", resourceVersion });
  if ("code" in found) return refused(found);
  return { code: 200, body: accept.includes("as=PartialObjectMetadataList") ? metadataOnly(found) : found };
}

function metadataOnly({ metadata, items }: ObjectList): object {
  const apiVersion = "meta.k8s.io/v1";
  const stripped = items.map((item) => ({ kind: "PartialObjectMetadata", apiVersion, metadata: item.metadata }));
  return { kind: "PartialObjectMetadataList", apiVersion, metadata, items: stripped };
}

function refused(refusal: Refusal): Reply {
  return { code: refusal.code, body: statusOf(refusal) };
}
