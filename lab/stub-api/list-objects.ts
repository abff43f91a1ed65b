import { type Address, isListed, kindOf } from "./address.ts";
import type { ApiObject, Refusal } from "./api-object.ts";
import { matches, type Selector } from "./selectors.ts";
import type { Store } from "./store.ts";

export interface ListQuery {
  readonly selector: Selector;
  readonly limit: number;
  readonly continue: string;
  /** `0`: from the cache. */
  readonly resourceVersion: string;
}

export interface ObjectList {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: {
    readonly resourceVersion: string;
    readonly continue?: string;
    readonly remainingItemCount?: number;
  };
  readonly items: readonly ApiObject[];
}

/** Not cached: a list of them is read from etcd, whatever version is requested. */
const UNCACHED = ["events"];

export function list(store: Store, address: Address, query: ListQuery): ObjectList | Refusal {
  if (query.continue !== "" && !["", "0"].includes(query.resourceVersion)) {
    return badRequest("specifying resource version is not allowed when using continue");
  }
  const token = parseToken(query.continue);
  if (token === undefined) return badRequest("the continue token is not valid");
  if (token.version !== undefined && store.since(token.version) === undefined) {
    return { code: 410, reason: "Expired", message: "The provided continue parameter is too old" };
  }
  const version = token.version ?? store.version();
  const found = store
    .entries()
    .filter(([path, object]) => isListed(address, path) && matches(object, query.selector))
    .map(([, object]) => object);
  // A list from the cache is not paginated.
  const isCached = query.resourceVersion === "0" && !UNCACHED.includes(address.resource);
  const limit = isCached || query.limit === 0 ? found.length : query.limit;
  const end = token.from + limit;
  const { kind, apiVersion } = kindOf(address);
  return {
    kind: `${kind}List`,
    apiVersion,
    metadata: {
      resourceVersion: String(version),
      ...(end < found.length ? { continue: makeToken(version, end), ...remaining(query, found.length - end) } : {}),
    },
    items: found.slice(token.from, end).map(withoutKind),
  };
}

/** With a selector a server would have to read everything to count. */
function remaining({ selector }: ListQuery, count: number): { readonly remainingItemCount?: number } {
  return selector.fields === "" && selector.labels === "" ? { remainingItemCount: count } : {};
}

/** Items of a list have neither. */
function withoutKind({ kind: _kind, apiVersion: _apiVersion, ...object }: ApiObject): ApiObject {
  return object;
}

interface Token {
  readonly version?: number;
  readonly from: number;
}

function makeToken(version: number, from: number): string {
  return Buffer.from(`${version} ${from}`).toString("base64url");
}

function parseToken(token: string): Token | undefined {
  if (token === "") return { from: 0 };
  const [, version, from] = /^(\d+) (\d+)$/.exec(Buffer.from(token, "base64url").toString("utf8")) ?? [];
  return version === undefined ? undefined : { version: Number(version), from: Number(from) };
}

function badRequest(message: string): Refusal {
  return { code: 400, reason: "BadRequest", message };
}
