import { OUTPUT_FORMATS, type OutputFormat } from "../report/output-format.ts";
import { durationText } from "./duration.ts";
import type { Raw } from "./setting-values.ts";
import * as values from "./setting-values.ts";

/** How a setting is parsed, formatted and described; a table of settings adds its name and meaning. */
export interface SettingKind<Value> {
  /** Returns the default if it is not set, and throws a SettingsError for invalid values. */
  readonly read: (raw: Raw | undefined) => Value;
  /** In the format of the configuration file. */
  readonly write: (value: Value) => unknown;
  /** The documentation of its values. */
  readonly range: string;
}

const asItIs = (value: unknown): unknown => value;

export const endpoint: SettingKind<string | undefined> = {
  read: values.endpoint,
  write: asItIs,
  range: "`unix://PATH`",
};

export const bool: SettingKind<boolean> = {
  read: (raw) => values.bool(raw) ?? false,
  write: asItIs,
  range: "`true`, `false`",
};

export const list: SettingKind<readonly string[]> = {
  read: values.list,
  write: asItIs,
  range: "[classes](classes.md)",
};

export const outputFormat: SettingKind<OutputFormat> = {
  read: values.outputFormat,
  write: asItIs,
  range: OUTPUT_FORMATS.map((format) => `\`${format}\``).join(", "),
};

export function absolutePath<Default extends string | undefined>(byDefault: Default): SettingKind<string | Default> {
  return { read: (raw) => values.absolutePath(raw) ?? byDefault, write: asItIs, range: "absolute path" };
}

export function plainText<Default extends string | undefined>(
  byDefault: () => Default,
  range: string,
): SettingKind<string | Default> {
  return { read: (raw) => values.text(raw) ?? byDefault(), write: asItIs, range };
}

export function duration(leastMs: number, defaultMs: number): SettingKind<number> {
  return {
    read: (raw) => values.duration(raw, leastMs) ?? defaultMs,
    write: durationText,
    range: `\`${durationText(leastMs)}\` to \`576h\``,
  };
}

export function wholeNumber(least: number, most: number, byDefault: number): SettingKind<number> {
  return {
    read: (raw) => values.wholeNumber(raw, least, most) ?? byDefault,
    write: asItIs,
    range: `${least} to ${most}`,
  };
}
