import * as v from "valibot";
import { type Api, type ByteBudget, FIRST_ISSUE } from "./api.ts";
import { KubeError } from "./errors.ts";

const PAGE_SIZE = 500;

/** Far above any node or cluster: a server that returns the same page forever must not block unghost. */
const MAX_PAGES = 200;

/** The limit for all pages together. */
const MAX_LIST_BYTES = 128 * 1024 * 1024;

export interface ListRequest<Item> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  /** Bypasses the server's cache, for reads right before a change. */
  readonly fresh?: boolean;
  /** From the server's cache, at least at this version. */
  readonly notOlderThan?: string;
  /** A smaller page for large objects. A server that answers from its cache returns all of them anyway. */
  readonly pageSize?: number;
  readonly item: v.GenericSchema<unknown, Item>;
}

export interface Listed<Item> {
  readonly items: readonly Item[];
  /** The version from which a watch continues. */
  readonly resourceVersion: string;
}

/** A complete list, page by page, from the server's cache if possible. */
export async function listAll<Item>(api: Api, request: ListRequest<Item>): Promise<readonly Item[]> {
  return (await listWithVersion(api, request)).items;
}

export async function listWithVersion<Item>(api: Api, request: ListRequest<Item>): Promise<Listed<Item>> {
  try {
    return await listPages(api, request);
  } catch (error) {
    if (!(error instanceof KubeError && error.kind === "expired")) throw error;
    return await listPages(api, request);
  }
}

/** A part of a list, in the server's order. */
export interface Page<Item> extends Listed<Item> {
  /** Remaining objects; the server may omit it. 0 on the last page. */
  readonly remaining: number | undefined;
}

/** A list that was compacted between two pages ends with the KubeError `expired`: only a new list is consistent. */
export async function* pagesOf<Item>(api: Api, request: ListRequest<Item>): AsyncGenerator<Page<Item>> {
  const { path, query, accept, item, pageSize = PAGE_SIZE } = request;
  const schema = v.object({
    metadata: v.optional(
      v.object({
        continue: v.optional(v.string()),
        resourceVersion: v.optional(v.string()),
        remainingItemCount: v.nullish(v.number()),
      }),
    ),
    // Go encodes an empty list as null.
    items: v.nullable(v.array(item)),
  });
  const budget = budgetFor(path);
  let next = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const from = next === "" ? firstPage(request) : { limit: String(pageSize), continue: next };
    const parameters = new URLSearchParams({ ...query, ...from });
    const result = v.safeParse(schema, await api.get(`${path}?${parameters.toString()}`, accept, budget), FIRST_ISSUE);
    if (!result.success) throw new KubeError("unreadable", `the API server's list ${path} has no list structure`);
    const { items, metadata } = result.output;
    next = metadata?.continue ?? "";
    const remaining = next === "" ? 0 : (metadata?.remainingItemCount ?? undefined);
    yield { items: items ?? [], remaining, resourceVersion: metadata?.resourceVersion ?? "" };
    if (next === "") return;
  }
  throw new KubeError("unreadable", `the API server's list ${path} does not end after ${MAX_PAGES} pages`);
}

async function listPages<Item>(api: Api, request: ListRequest<Item>): Promise<Listed<Item>> {
  const items: Item[] = [];
  let resourceVersion = "";
  for await (const page of pagesOf(api, request)) {
    for (const one of page.items) items.push(one);
    ({ resourceVersion } = page);
  }
  return { items, resourceVersion };
}

function budgetFor(path: string): ByteBudget {
  let left = MAX_LIST_BYTES;
  return {
    spend: (bytes) => {
      left -= bytes;
      if (left >= 0) return;
      throw new KubeError("unreadable", `the API server's list ${path} does not end after ${MAX_LIST_BYTES} bytes`);
    },
  };
}

/** resourceVersion=0 returns the whole cache in one response; a page of a given version would bypass the cache. */
function firstPage({
  fresh,
  notOlderThan,
  pageSize = PAGE_SIZE,
}: ListRequest<unknown>): Readonly<Record<string, string>> {
  if (fresh) return { limit: String(pageSize) };
  if (notOlderThan !== undefined) return { resourceVersion: notOlderThan, resourceVersionMatch: "NotOlderThan" };
  return { limit: String(pageSize), resourceVersion: "0" };
}
