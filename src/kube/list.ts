import * as v from "valibot";
import type { Api, ByteBudget } from "./api.ts";
import { KubeError } from "./kube-error.ts";

const PAGE_SIZE = 500;

/** Far beyond any node or cluster: a server that hands out the same page forever must not keep us. */
const MAX_PAGES = 200;

/** All pages together: a page that is as large as one answer may be must not come two hundred times. */
const MAX_LIST_BYTES = 128 * 1024 * 1024;

export interface ListRequest<Item> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  /** Past the server's cache: for what is about to be acted upon. */
  readonly fresh?: boolean;
  /** From the server's cache, and no older than this version that was seen before. */
  readonly notOlderThan?: string;
  /** Fewer at a time, for objects that are large. A server that answers from its cache gives all of them anyway. */
  readonly pageSize?: number;
  readonly item: v.GenericSchema<unknown, Item>;
}

export interface Listed<Item> {
  readonly items: readonly Item[];
  /** Where a watch goes on. */
  readonly resourceVersion: string;
}

/** A whole list, page by page, from the server's cache where it has one. */
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
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Objects that are still to come; the server may omit it. 0 on the last page. */
  readonly remaining: number | undefined;
  readonly resourceVersion: string;
}

/** A list that was compacted away between two pages ends with the KubeError `expired`: only a fresh one is consistent. */
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
    // Go writes an empty list as null.
    items: v.nullable(v.array(item)),
  });
  const budget = budgetFor(path);
  let next = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const from = next === "" ? firstPage(request) : { limit: String(pageSize), continue: next };
    const parameters = new URLSearchParams({ ...query, ...from });
    const result = v.safeParse(schema, await api.get(`${path}?${parameters.toString()}`, accept, budget));
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

/** "Whatever the cache has" is given whole; asked for a page of a certain version, the server would go past its cache. */
function firstPage({
  fresh,
  notOlderThan,
  pageSize = PAGE_SIZE,
}: ListRequest<unknown>): Readonly<Record<string, string>> {
  if (fresh) return { limit: String(pageSize) };
  if (notOlderThan !== undefined) return { resourceVersion: notOlderThan, resourceVersionMatch: "NotOlderThan" };
  return { limit: String(pageSize), resourceVersion: "0" };
}
