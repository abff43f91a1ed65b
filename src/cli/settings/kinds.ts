import * as v from "valibot";
import { parseListenAddress } from "../../agent/http/listen-address.ts";
import { truncate } from "../../host/text.ts";
import { parseEndpoint } from "../../runtime/find.ts";

/** How a setting is given, parsed and described. Messages of the schema name what is expected; the reader adds the rest. */
export interface Kind<Value = unknown> {
  readonly schema: v.GenericSchema<unknown, Value>;
  /** The documentation of its values. */
  readonly range: string;
  /** Its flag is a switch or a list; others have one value. */
  readonly form?: "switch" | "list";
  /** Parsed to milliseconds; the name of the value ends with Ms. */
  readonly unit?: "ms";
}

/** An invalid setting: the command exits 64 with this sentence. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** The words for a mistake that several commands know. */
export function noSuchAction(command: string, action: string, actions: readonly string[]): SettingsError {
  const [last = "", ...others] = actions.toReversed();
  return new SettingsError(
    `"${action}" is not an action of unghost ${command}: use ${others.toReversed().join(", ")} or ${last}`,
  );
}

export function noSuchEntry(id: string, where: "quarantine" | "the journal", lists: string): SettingsError {
  return new SettingsError(`there is no entry "${id}" in ${where}; unghost ${lists} lists the entries`);
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DAY_MS = 24 * 3_600_000;

/**
 * Durations like in Go and kubectl: 90s, 1h30m, 500ms, and days like in Prometheus: 30d. A bare number means seconds.
 * Returns undefined for anything else.
 */
export function parseDurationMs(given: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(given)) return Math.round(Number(given) * 1000);
  const parts = [...given.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join("") !== given) return undefined;
  let total = 0;
  for (const [, many, unit] of parts) total += Number(many) * (unit === "d" ? DAY_MS : (UNIT_MS[unit ?? ""] ?? 0));
  return Math.round(total);
}

/** The reverse: parsed to the same value. */
export function durationText(milliseconds: number): string {
  if (milliseconds > DAY_MS && milliseconds % DAY_MS === 0) return `${milliseconds / DAY_MS}d`;
  let rest = milliseconds;
  let written = "";
  for (const [unit, length] of Object.entries(UNIT_MS).toReversed()) {
    const whole = Math.floor(rest / length);
    if (whole > 0) written += `${whole}${unit}`;
    rest -= whole * length;
  }
  return written === "" ? "0s" : written;
}

/** Longer values are not quoted. */
const MAX_QUOTED = 60;

export function quoted(value: unknown): string {
  return truncate(JSON.stringify(value) ?? String(value), MAX_QUOTED);
}

const TEXT = ["string", "number"];

/** One value. Invalid is what has no result, or an error in its own words. */
function scalar<Value>(expected: string, parse: (given: string) => Value | Error | undefined, types = TEXT) {
  return v.pipe(
    v.unknown(),
    v.rawTransform<unknown, Value>(({ dataset: { value }, addIssue, NEVER }) => {
      const parsed = types.includes(typeof value) ? parse(String(value)) : undefined;
      if (parsed !== undefined && !(parsed instanceof Error)) return parsed;
      addIssue({ message: parsed instanceof Error ? parsed.message : `${expected}, got ${quoted(value)}` });
      return NEVER;
    }),
  );
}

/** Timers can wait for 24 days. */
const LONGEST = "576h";

/** With its own longest value, each error names the range; without one, the first mistake. */
export function duration(least: string, ownMost?: string) {
  const most = ownMost ?? LONGEST;
  const [leastMs = 0, mostMs = 0] = [least, most].map(parseDurationMs);
  const wanted = ownMost && `expected a duration from ${least} to ${most}, like 90s, 10m or 1h30m`;
  const schema = scalar(wanted ?? "expected text", (given) => {
    const ms = parseDurationMs(given);
    if (ms !== undefined && ms >= leastMs && ms <= mostMs) return ms;
    if (wanted !== undefined) return undefined;
    if (ms !== undefined) return new Error(`expected at least ${leastMs}ms and at most ${most}, got "${given}"`);
    return new Error(`"${given}" is not a duration: write it like 500ms, 90s, 10m or 1h30m`);
  });
  return { schema, range: `\`${least}\` to \`${most}\``, unit: "ms" } as const satisfies Kind<number>;
}

export const retention = {
  ...duration("0s", "3650d"),
  schema: v.pipe(
    duration("0s", "3650d").schema,
    v.check((ms) => ms === 0 || ms >= 3_600_000, "expected 0s (keep forever), or a duration from 1h to 3650d"),
  ),
  range: "`0s` (forever), or `1h` to `3650d`",
} as const satisfies Kind<number>;

export function wholeNumber(least: number, most: number): Kind<number> {
  const range = `${least} to ${most}`;
  const isWithin = (value: number) => Number.isInteger(value) && value >= least && value <= most;
  return { schema: numeric(`expected a whole number from ${range}`, isWithin), range };
}

export const share: Kind<number> = {
  schema: numeric("expected a share above 0 and up to 1, like 0.3", (value) => value > 0 && value <= 1),
  range: "above 0, up to 1",
};

function numeric(expected: string, isWithin: (value: number) => boolean) {
  return scalar(expected, (given) => (given !== "" && isWithin(Number(given)) ? Number(given) : undefined));
}

const WORDS = new Map([
  ...["true", "1", "yes", "on"].map((word) => [word, true] as const),
  ...["false", "0", "no", "off"].map((word) => [word, false] as const),
]);

/** Environment variables are strings. */
export const yesNo = {
  schema: scalar("expected true or false", (given) => WORDS.get(given.toLowerCase()), [...TEXT, "boolean"]),
  range: "`true`, `false`",
  form: "switch",
} as const satisfies Kind<boolean>;

export function choice<const Words extends readonly string[]>(words: Words, lead = "expected"): Kind<Words[number]> {
  const schema = scalar<Words[number]>(`${lead} ${words.join(", ")}`, (given) => words.find((word) => word === given));
  return { schema, range: words.map((word) => `\`${word}\``).join(", ") };
}

export function plainText(range: string): Kind<string> {
  return { schema: scalar("expected text", (given) => given), range };
}

export const absolutePath: Kind<string> = {
  schema: valid("expected an absolute path", (given) => given.startsWith("/")),
  range: "absolute path",
};

export const endpoint: Kind<string> = {
  schema: scalar("expected text", (given) => {
    const parsed = parseEndpoint(given);
    return parsed.ok ? given : new Error(parsed.message);
  }),
  range: "`unix://PATH`",
};

export const listenAddress: Kind<string> = {
  schema: valid(
    "expected HOST:PORT, like 127.0.0.1:20258, [fd00::1]:20258, :20258 for every address, or nothing to be reached nowhere",
    (given) => given === "" || succeeds(() => parseListenAddress(given)),
  ),
  range: "`HOST:PORT`",
};

/** By Kubernetes' own rule for names of namespaces. */
export const namespace: Kind<string> = {
  schema: valid("expected the name of a namespace: lower-case letters, digits and dashes", (given) =>
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(given),
  ),
  range: "name of a namespace",
};

export const timeZone: Kind<string> = {
  schema: valid("expected the name of a time zone, like Europe/Berlin or UTC", (name) =>
    succeeds(() => new Intl.DateTimeFormat("en", { timeZone: name })),
  ),
  range: "IANA names",
};

function valid(expected: string, isValid: (given: string) => boolean) {
  return scalar(expected, (given) => (isValid(given) ? given : undefined));
}

/** Its error names no place; ours does. */
function succeeds(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

/** Minutes after midnight. */
export function clockTime(last: "23:59" | "24:00"): Kind<number> {
  const schema = scalar(`expected a time from 00:00 to ${last}, like 22:30`, (given) => {
    const [, hours, minutes] = /^(\d{1,2}):([0-5]\d)$/.exec(given) ?? [];
    const minute = Number(hours) * 60 + Number(minutes);
    return minute <= (last === "24:00" ? 1440 : 1439) ? minute : undefined;
  });
  return { schema, range: `\`00:00\` to \`${last}\`` };
}

/** A list, or its only item; several words may be separated by commas. */
export function listOf<Item>({ schema }: Pick<Kind<Item>, "schema">, range: string) {
  const items = v.pipe(
    v.unknown(),
    v.transform((given): readonly unknown[] => (Array.isArray(given) ? given : [given])),
    v.transform((given) => given.flatMap((item) => (typeof item === "string" ? item.split(",") : [item]))),
    v.transform((given) => given.filter((item) => item !== "")),
    v.array(schema),
  );
  return { schema: items, range, form: "list" } as const satisfies Kind<readonly Item[]>;
}

/** The kinds of flags; all are optional, because environment and file may set them, too. */

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
  const value = Number(input);
  if (!Number.isInteger(value) || value < 1) throw new Error(`"${input}" is not a whole number from 1 on`);
  return value;
}
