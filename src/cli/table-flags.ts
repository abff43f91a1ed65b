import { OUTPUT_FORMATS } from "../report/output-format.ts";
import { SettingsError } from "./settings-error.ts";
import type { TableShape } from "./show-report.ts";

/** Layouts of the table that are asked for like a format. */
const LAYOUTS: Readonly<Record<string, TableShape>> = { wide: { wide: true }, name: { names: true } };
const KNOWN = ["table", ...Object.keys(LAYOUTS), ...OUTPUT_FORMATS.filter((format) => format !== "table")];

/** `-o wide` and `-o name` are the table in another layout; every other format is a setting. */
export function takeLayout<Flags extends { readonly output?: string }>(
  flags: Flags,
): { readonly layout: TableShape; readonly flags: Flags } {
  const { output } = flags;
  if (output === undefined || OUTPUT_FORMATS.some((format) => format === output)) return { layout: {}, flags };
  const layout = Object.hasOwn(LAYOUTS, output) ? LAYOUTS[output] : undefined;
  if (layout !== undefined) return { layout, flags: { ...flags, output: "table" } };
  throw new SettingsError(`--output: expected one of ${KNOWN.join(", ")}, got "${output}"`);
}
