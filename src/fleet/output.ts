import { printable } from "../host/text.ts";
import { type Column, formatDocument, plainTable } from "../report/output.ts";
import { renderJsonPath, TemplateError, valueInWords, valuesAt } from "./json-path.ts";

/** kubectl's printers, applied to what a fleet command found. */
export type FleetOutput =
  | { readonly kind: "table" | "wide" | "json" | "yaml" | "name" }
  | { readonly kind: "jsonpath"; readonly template: string }
  | { readonly kind: "custom-columns"; readonly columns: readonly CustomColumn[] };

interface CustomColumn {
  readonly heading: string;
  readonly path: string;
}

const SIMPLE = ["table", "wide", "json", "yaml", "name"] as const;

/** An error is a sentence for the user. */
export function parseOutput(given: string): FleetOutput | Error {
  const simple = SIMPLE.find((kind) => kind === given);
  if (simple !== undefined) return { kind: simple };
  const [kind = "", template = ""] = splitOnce(given, "=");
  if (kind.startsWith("go-template"))
    return new Error("go-template is not supported: use jsonpath, or json and a program such as jq");
  if (kind !== "jsonpath" && kind !== "custom-columns") {
    return new Error(`--output: expected one of ${SIMPLE.join(", ")}, custom-columns=…, jsonpath=…, got "${kind}"`);
  }
  try {
    if (template === "") throw new TemplateError(`${kind}= needs a template`);
    if (kind === "custom-columns") return { kind, columns: customColumns(template) };
    renderJsonPath(template, {});
    return { kind, template };
  } catch (error) {
    if (error instanceof TemplateError) return error;
    throw error;
  }
}

/** `NODE:.node,VERDICT:.verdict` */
function customColumns(template: string): readonly CustomColumn[] {
  return template.split(/,(?=[^,:]+:)/).map((part) => {
    const [heading = "", path = ""] = splitOnce(part, ":");
    if (heading === "" || path === "") throw new TemplateError(`custom-columns: "${part}" is not HEADING:.PATH`);
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
    case "custom-columns": {
      const columns: readonly Column[] = output.columns.map(({ heading }) => ({ heading }));
      const rows = document.items.map((item) =>
        output.columns.map(({ path }) => valuesAt(path, item).map(valueInWords).join(",") || "<none>"),
      );
      return lines(plainTable(columns, rows).slice(noHeaders ? 1 : 0));
    }
  }
}

/** Names and messages may be hostile, and a template prints them as they are. */
function safe(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document), (_, value: unknown) =>
    typeof value === "string" ? printable(value) : value,
  );
}

function lines(all: readonly string[]): string {
  return all.map((line) => `${line.trimEnd()}\n`).join("");
}
