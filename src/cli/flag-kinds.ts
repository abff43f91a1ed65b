import { OUTPUT_FORMATS } from "../report/output-format.ts";
import { SettingsError } from "./setting-values.ts";
import type { TableShape } from "./show-report.ts";

/** The three kinds of flags; all are optional, because environment and file may set them, too. */

export function onOff(brief: string) {
  return { kind: "boolean", optional: true, withNegated: false, brief } as const;
}

export function text(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, brief, placeholder } as const;
}

export function list(brief: string, placeholder: string) {
  return { kind: "parsed", parse: String, optional: true, variadic: ",", brief, placeholder } as const;
}

export function positive(brief: string, placeholder: string) {
  return { kind: "parsed", parse: positiveNumber, optional: true, brief, placeholder } as const;
}

function positiveNumber(input: string): number {
  const number = Number(input);
  if (!Number.isInteger(number) || number < 1) throw new Error(`"${input}" is not a whole number from 1 on`);
  return number;
}

/** What scan and heal can be narrowed to. */
export const targetsParameter = {
  kind: "array",
  parameter: { parse: String, brief: "NAMESPACE/POD, sandbox id or finding id (default: all)", placeholder: "TARGET" },
} as const;

type FlagTable = Readonly<Record<string, { readonly flag: object }>>;

/** The flags of a table of settings, under the same names. */
export function flagsOf<Table extends FlagTable>(table: Table) {
  const flags = Object.fromEntries(Object.entries(table).map(([key, { flag }]) => [key, flag]));
  return flags as { readonly [Key in keyof Table]: Table[Key]["flag"] };
}

/** The values of such flags. */
export type FlagValues<Flags> = {
  readonly [Key in keyof Flags]?: Flags[Key] extends { readonly kind: "boolean" }
    ? boolean
    : Flags[Key] extends { readonly variadic: string }
      ? readonly string[]
      : string;
};

/** Table layouts that are requested like a format. */
const LAYOUTS: Readonly<Record<string, TableShape>> = { wide: { wide: true }, name: { names: true } };
const KNOWN = ["table", ...Object.keys(LAYOUTS), ...OUTPUT_FORMATS.filter((format) => format !== "table")];

/** `-o wide` and `-o name` are layouts of the table; every other format is a setting. */
export function takeLayout<Flags extends { readonly output?: string }>(
  flags: Flags,
): { readonly layout: TableShape; readonly flags: Flags } {
  const { output } = flags;
  if (output === undefined || OUTPUT_FORMATS.some((format) => format === output)) return { layout: {}, flags };
  const layout = Object.hasOwn(LAYOUTS, output) ? LAYOUTS[output] : undefined;
  if (layout !== undefined) return { layout, flags: { ...flags, output: "table" } };
  throw new SettingsError(`--output: expected one of ${KNOWN.join(", ")}, got "${output}"`);
}
