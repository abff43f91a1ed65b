import { printable } from "../host/text.ts";

/** One column of a table, and how it is reduced on a narrow screen. */
export interface Column {
  readonly heading: string;
  /** Missing: always as wide as its widest cell. `middle` keeps both ends, which distinguish names. */
  readonly shorten?: { readonly keep: "start" | "middle"; readonly comfortable: number; readonly least: number };
  /**
   * `early`: before anything is shortened to its minimum. `late`: after that. `last`: when that was not enough. Of
   * several the rightmost is dropped first. Missing: never.
   */
  readonly drop?: "early" | "late" | "last";
}

export interface Cell {
  readonly text: string;
  readonly style?: (text: string) => string;
}

export interface Layout {
  /** Infinity without a screen: then nothing is dropped or shortened. */
  readonly width: number;
  readonly headings: boolean;
}

const GAP = 2;
const ELLIPSIS = "…";

/** kubectl-style columns: two spaces apart, no borders, headings in capitals. */
export function layOut(columns: readonly Column[], rows: readonly (readonly Cell[])[], layout: Layout): string[] {
  const { heading, row } = fitColumns(columns, rows, layout);
  return [...(layout.headings ? [heading] : []), ...rows.map((cells) => row(cells))];
}

/** Rows of plain text; complete in a pipe, where no width is known. */
export function plainTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  screenColumns = Number.POSITIVE_INFINITY,
): string[] {
  const cells = rows.map((row) => row.map((text) => ({ text: printable(text) })));
  return layOut(columns, cells, { width: screenColumns, headings: true });
}

export interface FittedColumns {
  readonly heading: string;
  /** Text that is wider than its column is shortened on a screen, and shifts the rest of its line without one. */
  readonly row: (cells: readonly Cell[]) => string;
  /** The maximum width of the last column; undefined if it is not shown. */
  readonly roomAtEnd: number | undefined;
}

/** For rows that are printed one by one: `expected` have the widths of those rows. */
export function fitColumns(
  columns: readonly Column[],
  expected: readonly (readonly Cell[])[],
  layout: Layout,
): FittedColumns {
  const natural = columns.map(({ heading }, index) =>
    expected.reduce(
      (widest, row) => Math.max(widest, lengthOf(row[index]?.text ?? "")),
      layout.headings ? heading.length : 0,
    ),
  );
  const widths = fitted(columns, natural, layout.width);
  const lastWidth = widths.at(-1);
  const roomAtEnd = lastWidth === undefined ? undefined : lastWidth + layout.width - total(widths);
  const onScreen = Number.isFinite(layout.width);
  const row = (cells: readonly Cell[]) => line(cells, widths, columns, { roomAtEnd, onScreen });
  return { heading: row(columns.map(({ heading }) => ({ text: heading }))), row, roomAtEnd };
}

/** The width of each column; undefined for one that is not shown. */
function fitted(columns: readonly Column[], natural: readonly number[], width: number): (number | undefined)[] {
  const shown: (number | undefined)[] = [...natural];
  const bound = (to: "comfortable" | "least") => {
    for (const [index, { shorten }] of columns.entries()) {
      const now = shown[index];
      if (now !== undefined && shorten !== undefined) shown[index] = Math.min(now, shorten[to]);
    }
  };
  const dropWhileTooWide = (when: Column["drop"]) => {
    for (let index = columns.length - 1; index >= 0 && total(shown) > width; index--) {
      if (columns[index]?.drop === when) shown[index] = undefined;
    }
  };
  if (total(shown) <= width) return shown;
  bound("comfortable");
  dropWhileTooWide("early");
  if (total(shown) > width) bound("least");
  dropWhileTooWide("late");
  dropWhileTooWide("last");
  // The remaining width goes to the shortened columns, in order.
  let spare = width - total(shown);
  for (const [index, wanted] of natural.entries()) {
    const now = shown[index];
    if (now === undefined || spare <= 0) continue;
    const more = Math.min(spare, wanted - now);
    shown[index] = now + more;
    spare -= more;
  }
  return shown;
}

function total(widths: readonly (number | undefined)[]): number {
  const shown = widths.filter((width) => width !== undefined);
  return shown.reduce((sum, width) => sum + width, GAP * Math.max(0, shown.length - 1));
}

interface Edge {
  readonly roomAtEnd: number | undefined;
  readonly onScreen: boolean;
}

function line(
  cells: readonly Cell[],
  widths: readonly (number | undefined)[],
  columns: readonly Column[],
  { roomAtEnd, onScreen }: Edge,
): string {
  const last = widths.findLastIndex((width) => width !== undefined);
  return cells
    .flatMap(({ text, style = plain }, index) => {
      const width = widths[index];
      if (width === undefined) return [];
      const room = index === widths.length - 1 ? (roomAtEnd ?? width) : width;
      const short = onScreen ? shortened(text, room, columns[index]?.shorten?.keep ?? "start") : text;
      return [style(short) + (index === last ? "" : " ".repeat(Math.max(0, width - lengthOf(short))))];
    })
    .join(" ".repeat(GAP));
}

export function shortened(text: string, width: number, keep: "start" | "middle"): string {
  if (lengthOf(text) <= width) return text;
  const characters = Array.from(text);
  if (keep === "start") return `${characters.slice(0, Math.max(0, width - 1)).join("")}${ELLIPSIS}`;
  const tail = Math.floor((width - 1) / 2);
  const head = width - 1 - tail;
  return `${characters.slice(0, head).join("")}${ELLIPSIS}${tail === 0 ? "" : characters.slice(-tail).join("")}`;
}

function lengthOf(text: string): number {
  return Array.from(text).length;
}

function plain(text: string): string {
  return text;
}

/** Machine-readable output. YAML is loaded on demand, to save start-up time. */
export async function formatDocument(document: unknown, format: Exclude<OutputFormat, "table">): Promise<string> {
  if (format === "json") return `${JSON.stringify(document, undefined, 2).replace(UNSAFE, jsonEscape)}\n`;
  const { Document, visit } = await import("yaml");
  const yaml = new Document(document, { aliasDuplicateObjects: false });
  visit(yaml, {
    Scalar: (_, node) => {
      if (typeof node.value === "string" && NOT_PLAIN.test(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return yaml.toString({ lineWidth: 0 }).replace(UNSAFE, yamlEscape);
}

/** YAML can escape these only between double quotes; a tab is valid in YAML but not safe on a terminal. */
const NOT_PLAIN = /[\p{Cc}\u2028\u2029\p{Cf}]/u;

/**
 * Control and invisible characters that both formats would print. This output is also read on terminals, and its names
 * may be hostile.
 */
const UNSAFE = /[\u007f-\u009f\u2028\u2029\p{Cf}]/gu;

function jsonEscape(character: string): string {
  return character.split("").map(unitEscape).join("");
}

/** YAML does not support JSON's surrogate pairs, and has its own longer escape. */
function yamlEscape(character: string): string {
  const codePoint = character.codePointAt(0) ?? 0;
  return codePoint > 0xffff ? `\\U${codePoint.toString(16).padStart(8, "0")}` : unitEscape(character);
}

function unitEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

export type OutputFormat = "table" | "json" | "yaml";
export const OUTPUT_FORMATS: readonly OutputFormat[] = ["table", "json", "yaml"];
