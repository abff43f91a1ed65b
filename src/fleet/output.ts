import { namedFile } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { printable } from "../host/text.ts";
import { formatDocument } from "../report/output.ts";
import { goJson, renderJsonPath, sortedEntries, TemplateError, valuesAt, valuesOfTemplate } from "./json-path.ts";

/** kubectl's printers, applied to what a fleet command found. */
export type FleetOutput =
  | { readonly kind: "table" | "wide" | "json" | "yaml" | "name" }
  | { readonly kind: "jsonpath"; readonly template: string }
  | { readonly kind: "jsonpath-as-json"; readonly template: string }
  | { readonly kind: "custom-columns"; readonly columns: readonly CustomColumn[] };

interface CustomColumn {
  readonly heading: string;
  readonly path: string;
}

const TEMPLATES = ["jsonpath", "jsonpath-as-json", "custom-columns"] as const;
const SIMPLE = ["table", "wide", "json", "yaml", "name"] as const;

/** An error is a sentence for the user. */
export function parseOutput(given: string): FleetOutput | Error {
  const simple = SIMPLE.find((kind) => kind === given);
  if (simple !== undefined) return { kind: simple };
  const [name = "", argument = ""] = splitOnce(given, "=");
  if (/^(?:go-)?template/.test(name))
    return new Error("--output: go-template is not supported: use jsonpath=…, or json and a program such as jq");
  const kind = TEMPLATES.find((one) => name === one || name === `${one}-file`);
  if (kind === undefined || name === "jsonpath-as-json-file") {
    const forms = TEMPLATES.map((one) => `${one}=…`).join(", ");
    return new Error(`--output: expected one of ${SIMPLE.join(", ")}, ${forms}, got "${name}"`);
  }
  try {
    if (argument === "") throw new TemplateError(`--output: ${name}= needs a template`);
    const template = name.endsWith("-file") ? readTemplate(name, argument) : argument;
    if (kind === "custom-columns") return { kind, columns: customColumns(template) };
    renderJsonPath(template, {});
    return { kind, template };
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}

/** kubectl's file of custom columns has a line of headings and a line of paths. */
function readTemplate(kind: string, path: string): string {
  const file = readRegularFile(namedFile(path));
  if (file.kind !== "content") throw new TemplateError(`--output: ${kind}: ${path} cannot be read`);
  const { text } = file;
  if (kind === "jsonpath-file") return text;
  const [headings = [], paths = []] = text.split("\n").map((line) => line.split(/\s+/).filter(Boolean));
  if (headings.length === 0 || headings.length !== paths.length)
    throw new TemplateError(`--output: ${kind}: ${path} needs a line of headings, and a line with as many paths`);
  return headings.map((heading, index) => `${heading}:${paths[index] ?? ""}`).join(",");
}

/** `NODE:.node,VERDICT:.verdict` */
function customColumns(template: string): readonly CustomColumn[] {
  return template.split(/,(?=[^,:]*:)/).map((part) => {
    const [heading = "", path = ""] = splitOnce(part, ":");
    if (path === "") throw new TemplateError(`custom-columns: "${part}" is not HEADING:.PATH`);
    const plain = path.replace(/^\{(.*)\}$/, "$1");
    valuesAt(plain, {});
    return { heading, path: plain };
  });
}

function splitOnce(text: string, separator: string): readonly string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

export interface Printable {
  /** Everything, as JSON has it. Its `items` are the rows of custom columns. */
  readonly document: { readonly items: readonly unknown[] };
  readonly names: readonly string[];
  readonly table: (isWide: boolean) => readonly string[];
}

/** Ends with a newline, as kubectl's does, except for jsonpath. */
export async function formatOutput(
  output: FleetOutput,
  { document, names, table }: Printable,
  noHeaders: boolean,
): Promise<string> {
  switch (output.kind) {
    case "table":
    case "wide":
      return lines(table(output.kind === "wide"));
    case "name":
      return lines(names.map(printable));
    case "json":
    case "yaml":
      return await formatDocument(document, output.kind);
    case "jsonpath":
      return renderJsonPath(output.template, safe(document));
    case "jsonpath-as-json":
      return `${goJson(valuesOfTemplate(output.template, safe(document)), "    ")}\n`;
    case "custom-columns": {
      const rows = document.items.map((item) =>
        output.columns.map(({ path }) => {
          const values = valuesAt(path, item);
          return values.length === 0 ? "<none>" : values.map(goWords).map(printable).join(",");
        }),
      );
      return unpadded(inTabs([...(noHeaders ? [] : [output.columns.map(({ heading }) => heading)]), ...rows]));
    }
  }
}

/** As Go's fmt prints it, and so kubectl in custom columns. */
function goWords(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goWords).join(" ")}]`;
  if (typeof value === "string") return value;
  if (typeof value !== "object") return JSON.stringify(value);
  return `map[${sortedEntries(value)
    .map(([key, inner]) => `${key}:${goWords(inner)}`)
    .join(" ")}]`;
}

const LEAST_WIDTH = 6;
const PADDING = 3;

/** With the widths of kubectl's custom columns; the last column is not padded. */
function inTabs(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(LEAST_WIDTH, ...rows.map((row) => (row[column] ?? "").length + PADDING)),
  );
  return rows.map((row) =>
    row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0))).join(""),
  );
}

/** Names and messages may be hostile, and a template prints them as they are. */
function safe(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document), (_, value: unknown) =>
    typeof value === "string" ? printable(value) : value,
  );
}

function unpadded(all: readonly string[]): string {
  return all.map((line) => `${line}\n`).join("");
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line.trimEnd()}\n`).join("");
}
