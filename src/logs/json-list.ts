import { parseJson } from "../host/text.ts";

/** Where Loki, Elasticsearch, kubectl and cloud consoles have their records. */
const LISTS: ReadonlySet<string> = new Set([
  "data",
  "entries",
  "events",
  "hits",
  "items",
  "logs",
  "records",
  "result",
  "streams",
  "values",
]);
const PERHAPS = new RegExp(`^\\s{0,20}(?:\\[|\\{[^]*"(?:${[...LISTS].join("|")})"\\s{0,4}:\\s{0,4}\\[)`);
const DEEPEST = 6;

/** The records of an answer in JSON that has several on one line; undefined if the line is no such answer. */
export function recordsInJson(line: string): readonly string[] | undefined {
  if (!PERHAPS.test(line)) return undefined;
  const list = listIn(parseJson(line), 0);
  return list === undefined || list.length < 2 ? undefined : list;
}

/** As texts, whatever is nested in them taken apart as well. */
function listIn(value: unknown, depth: number): readonly string[] | undefined {
  if (typeof value !== "object" || value === null || depth > DEEPEST) return undefined;
  if (Array.isArray(value)) {
    // A time and a line: Loki's pair is one record.
    if (value.every((one) => typeof one !== "object")) return [value.join(" ")];
    return value.flatMap((one) => listIn(one, depth + 1) ?? [textOf(one)]);
  }
  const [list] = Object.entries(value).flatMap(([key, inner]) =>
    LISTS.has(key) ? [listIn(inner, depth + 1) ?? []] : [],
  );
  return list;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
