import * as v from "valibot";
import type { Api } from "./api.ts";
import { KubeError } from "./errors.ts";

/**
 * The rows that kubectl prints, computed by the server: for thousands of nodes or pods they have a hundredth of the
 * bytes of the objects.
 */
const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io";

const TableSchema = v.object({
  kind: v.literal("Table"),
  metadata: v.optional(v.object({ continue: v.optional(v.string()) })),
  columnDefinitions: v.nullish(v.array(v.object({ name: v.string() })), []),
  rows: v.nullish(v.array(v.object({ cells: v.array(v.unknown()) })), []),
});

export interface TableRequest<Column extends string> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** As in kubectl's headings, such as `Status`. */
  readonly columns: readonly Column[];
}

const PAGE_SIZE = 5000;
const MAX_PAGES = 20;

/** The chosen columns of each object; "" for a column that this server does not have. */
export async function listTable<Column extends string>(
  api: Api,
  { path, query, columns }: TableRequest<Column>,
): Promise<readonly Readonly<Record<Column, string>>[]> {
  const found: Readonly<Record<Column, string>>[] = [];
  let next: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    // From the server's cache, which answers with all rows at once; an older server sends pages.
    const position: Record<string, string> = next === undefined ? { resourceVersion: "0" } : { continue: next };
    const parameters = new URLSearchParams({ ...query, ...position, limit: String(PAGE_SIZE), includeObject: "None" });
    const answer = v.safeParse(TableSchema, await api.get(`${path}?${parameters.toString()}`, TABLE));
    if (!answer.success) throw new KubeError("unreadable", `the API server's list ${path} is no table`);
    const { columnDefinitions, rows, metadata } = answer.output;
    const places = columns.map((name) => [name, columnDefinitions.findIndex((one) => one.name === name)] as const);
    for (const { cells } of rows) {
      const row = Object.fromEntries(places.map(([name, at]) => [name, cellText(cells[at])]));
      found.push(row as Record<Column, string>);
    }
    next = metadata?.continue;
    if (!next) return found;
  }
  throw new KubeError("unreadable", `the API server's list ${path} does not end after ${MAX_PAGES} pages`);
}

function cellText(cell: unknown): string {
  if (typeof cell === "string") return cell;
  return typeof cell === "number" || typeof cell === "boolean" ? String(cell) : "";
}
