import { OUTPUT_FORMATS, type OutputFormat } from "../report/output-format.ts";
import { parseEndpoint } from "../runtime/configured-endpoint.ts";
import { parseDurationMs } from "./duration.ts";

/** A value with its source, so that an error can name the place to correct. */
export interface Raw {
  readonly value: unknown;
  readonly from: string;
}

/** The maximum of timers is 24 days. */
const LONGEST_DURATION_MS = 24 * 24 * 3_600_000;

export function text(raw: Raw | undefined): string | undefined {
  if (raw === undefined) return undefined;
  if (typeof raw.value === "string" || typeof raw.value === "number") return String(raw.value);
  throw new SettingsError(`${raw.from}: expected text, got ${JSON.stringify(raw.value)}`);
}

export function absolutePath(raw: Raw | undefined): string | undefined {
  const value = text(raw);
  if (value === undefined || value.startsWith("/")) return value;
  throw new SettingsError(`${raw?.from}: expected an absolute path, got "${value}"`);
}

export function bool(raw: Raw | undefined): boolean | undefined {
  if (raw === undefined) return undefined;
  if (typeof raw.value === "boolean") return raw.value;
  const word = String(raw.value).toLowerCase();
  if (["1", "true", "yes", "on"].includes(word)) return true;
  if (["0", "false", "no", "off"].includes(word)) return false;
  throw new SettingsError(`${raw.from}: expected true or false, got "${word}"`);
}

export function endpoint(raw: Raw | undefined): string | undefined {
  const value = text(raw);
  if (value === undefined) return undefined;
  const parsed = parseEndpoint(value);
  if (parsed.ok) return value;
  throw new SettingsError(`${raw?.from}: ${parsed.message}`);
}

export function duration(raw: Raw | undefined, leastMs: number): number | undefined {
  const value = text(raw);
  if (value === undefined) return undefined;
  const ms = parseDurationMs(value);
  if (ms === undefined) {
    throw new SettingsError(`${raw?.from}: "${value}" is not a duration: write it like 500ms, 90s, 10m or 1h30m`);
  }
  if (ms >= leastMs && ms <= LONGEST_DURATION_MS) return ms;
  throw new SettingsError(`${raw?.from}: expected at least ${leastMs}ms and at most 576h, got "${value}"`);
}

export function wholeNumber(raw: Raw | undefined, least: number, most: number): number | undefined {
  const value = text(raw);
  if (value === undefined) return undefined;
  const number = Number(value);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  throw new SettingsError(`${raw?.from}: expected a whole number from ${least} to ${most}, got "${value}"`);
}

export function outputFormat(raw: Raw | undefined): OutputFormat {
  const value = text(raw) ?? "table";
  const known = OUTPUT_FORMATS.find((format) => format === value);
  if (known !== undefined) return known;
  throw new SettingsError(`${raw?.from}: expected one of ${OUTPUT_FORMATS.join(", ")}, got "${value}"`);
}

export function list(raw: Raw | undefined): readonly string[] {
  if (raw === undefined) return [];
  const values: readonly unknown[] = Array.isArray(raw.value) ? raw.value : [raw.value];
  return values.flatMap((value) => String(value).split(",")).filter((value) => value !== "");
}

/** An invalid setting: the command exits 64 with this sentence. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}
