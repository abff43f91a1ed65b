import type { TomlTable } from "smol-toml";
import { property } from "../../host/text.ts";
import { parseToml } from "../../host/toml.ts";

export type TomlEdit = { readonly text: string } | { readonly problem: string };

/** One key of one table. An undefined value removes the key. */
export interface TomlChange {
  readonly table: readonly string[];
  readonly key: string;
  readonly value: readonly string[] | string | undefined;
}

/**
 * Changes one key and not one other byte. What comes out is parsed again and compared: an edit that would change
 * anything else, or that is not possible in the way the file is written, is a problem.
 */
export function editToml(text: string, change: TomlChange): TomlEdit {
  const before = parseToml(text);
  if ("problem" in before) return { problem: `it does not parse: ${before.problem}` };
  if (change.value === undefined && tomlValue(text, change.table, change.key) === undefined) return { text };
  const wanted = fingerprint(withChange(before.table, change));
  if (fingerprint(before.table) === wanted) return { text };
  for (const candidate of candidates(text, change)) {
    const after = parseToml(candidate);
    if (!("problem" in after) && fingerprint(after.table) === wanted) return { text: candidate };
  }
  return { problem: `${[...change.table, change.key].join(".")} is written in a way that cannot be changed safely` };
}

export function tomlValue(text: string, table: readonly string[], key: string): unknown {
  const parsed = parseToml(text);
  if ("problem" in parsed) return undefined;
  return property(table.reduce<unknown>(property, parsed.table), key);
}

function* candidates(text: string, { table, key, value }: TomlChange): Generator<string> {
  const lines = text.split("\n");
  const line = value === undefined ? [] : [`${key} = ${JSON.stringify(value)}`];
  const headers = lines.flatMap((one, at) => (/^\s*\[/.test(one) ? [{ at, path: headerPath(one) }] : []));
  const header = headers.find(({ path }) => path !== undefined && path.join("\0") === table.join("\0"));
  if (header === undefined) {
    const name = table.map((part) => (/^[\w-]+$/.test(part) ? part : JSON.stringify(part))).join(".");
    yield `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}[${name}]\n${line.join("")}\n`;
    return;
  }
  const end = headers.find(({ at }) => at > header.at)?.at ?? lines.length;
  const old = lines.findIndex((one, at) => at > header.at && at < end && isKey(one, key));
  if (old < 0) {
    yield [...lines.slice(0, header.at + 1), ...line, ...lines.slice(header.at + 1)].join("\n");
    return;
  }
  const indent = /^\s*/.exec(lines[old] ?? "")?.[0] ?? "";
  // The value may go over several lines.
  for (let last = old + 1; last <= end; last++)
    yield [...lines.slice(0, old), ...line.map((one) => indent + one), ...lines.slice(last)].join("\n");
}

function isKey(line: string, key: string): boolean {
  const [name = ""] = line.trimStart().split(/[\s=]/, 1);
  return [key, `"${key}"`, `'${key}'`].includes(name);
}

function headerPath(line: string): readonly string[] | undefined {
  const parsed = parseToml(line);
  if ("problem" in parsed) return undefined;
  const path: string[] = [];
  for (let table: unknown = parsed.table; ; ) {
    const [name] = Object.keys(table as object);
    if (name === undefined) return path;
    path.push(name);
    table = property(table, name);
  }
}

function withChange(table: TomlTable, { table: path, key, value }: TomlChange): unknown {
  const [name, ...rest] = path;
  if (name === undefined) {
    const { [key]: _old, ...others } = table;
    return value === undefined ? others : { ...others, [key]: value };
  }
  return { ...table, [name]: withChange((table[name] ?? {}) as TomlTable, { table: rest, key, value }) };
}

/** Whatever the order of keys. */
function fingerprint(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) => {
    if (typeof one === "bigint") return `${one}n`;
    if (typeof one !== "object" || one === null || Array.isArray(one) || one instanceof Date) return one;
    return Object.fromEntries(Object.entries(one).sort(([first], [second]) => (first < second ? -1 : 1)));
  });
}
