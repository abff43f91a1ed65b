import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./kube-error.ts";

const PAGE_SIZE = 500;

/** Far beyond any node or cluster: a server that hands out the same page for ever must not keep us. */
const MAX_PAGES = 200;

export interface ListRequest<Item> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly accept?: string;
  /** Past the server's cache: for what is about to be acted upon. */
  readonly fresh?: boolean;
  readonly item: v.GenericSchema<unknown, Item>;
}

/** A whole list, page by page, from the server's cache where it has one. */
export async function listAll<Item>(api: Api, request: ListRequest<Item>): Promise<readonly Item[]> {
  try {
    return await listPages(api, request);
  } catch (error) {
    if (!(error instanceof KubeError && error.kind === "expired")) throw error;
    // The list was compacted away between two pages: only a fresh one is consistent.
    return await listPages(api, request);
  }
}

async function listPages<Item>(api: Api, request: ListRequest<Item>): Promise<readonly Item[]> {
  const { path, query, accept, item, fresh = false } = request;
  const schema = v.object({
    metadata: v.optional(v.object({ continue: v.optional(v.string()) })),
    // Go writes an empty list as null.
    items: v.nullable(v.array(item)),
  });
  const items: Item[] = [];
  let next = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    // "Whatever the cache has" and "go on from here" exclude each other.
    const first = fresh ? {} : { resourceVersion: "0" };
    const from = next === "" ? first : { continue: next };
    const parameters = new URLSearchParams({ ...query, limit: String(PAGE_SIZE), ...from });
    const result = v.safeParse(schema, await api.get(`${path}?${parameters.toString()}`, accept));
    if (!result.success)
      throw new KubeError("unreadable", `the API server's list ${path} is not what a list looks like`);
    for (const one of result.output.items ?? []) items.push(one);
    next = result.output.metadata?.continue ?? "";
    if (next === "") return items;
  }
  throw new KubeError("unreadable", `the API server's list ${path} does not end after ${MAX_PAGES} pages`);
}
