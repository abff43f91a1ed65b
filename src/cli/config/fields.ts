import * as v from "valibot";
import { parseDurationMs } from "../duration.ts";
import { didYouMean } from "./suggest.ts";

/** The value types of the agent's section. A message names the expected value; the actual value is added. */

export function duration(least: string, most: string) {
  const [leastMs = 0, mostMs = 0] = [least, most].map(parseDurationMs);
  const expected = `expected a duration from ${least} to ${most}, like 90s, 10m or 1h30m`;
  return v.pipe(
    v.union([v.string(), v.number()], expected),
    v.transform((value) => parseDurationMs(String(value)) ?? Number.NaN),
    v.check((ms) => ms >= leastMs && ms <= mostMs, expected),
  );
}

export function wholeNumber(least: number, most: number) {
  const expected = `expected a whole number from ${least} to ${most}`;
  return v.pipe(
    v.union([v.string(), v.number()], expected),
    v.transform((value) => (value === "" ? Number.NaN : Number(value))),
    v.check((value) => Number.isInteger(value) && value >= least && value <= most, expected),
  );
}

/** Greater than 0, at most 1. */
export function share() {
  const expected = "expected a share above 0 and up to 1, like 0.3";
  return v.pipe(
    v.union([v.string(), v.number()], expected),
    v.transform((value) => (value === "" ? Number.NaN : Number(value))),
    v.check((value) => value > 0 && value <= 1, expected),
  );
}

/** Environment variables are strings. */
export function bool() {
  const words: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
    [true, true],
    ["true", true],
    ["1", true],
    ["yes", true],
    ["on", true],
    [false, false],
    ["false", false],
    ["0", false],
    ["no", false],
    ["off", false],
  ]);
  return v.pipe(
    v.unknown(),
    v.check((value) => words.has(value), "expected true or false"),
    v.transform((value) => words.get(value) === true),
  );
}

export function oneOf<const Words extends readonly string[]>(words: Words) {
  return v.picklist(words, `expected ${words.join(", ")}`);
}

export function absolutePath() {
  const expected = "expected an absolute path";
  return v.pipe(v.string(expected), v.startsWith("/", expected));
}

/** Namespaces, by Kubernetes' own rule for their names. */
export function namespace() {
  const expected = "expected the name of a namespace: lower-case letters, digits and dashes";
  return v.pipe(
    v.union([v.string(), v.number()], expected),
    v.transform(String),
    v.regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, expected),
  );
}

/** Minutes after midnight. */
export function timeOfDay(last: "23:59" | "24:00") {
  const expected = `expected a time from 00:00 to ${last}, like 22:30`;
  return v.pipe(
    v.string(expected),
    v.transform((value) => {
      const [, hours, minutes] = /^(\d{1,2}):([0-5]\d)$/.exec(value) ?? [];
      return Number(hours) * 60 + Number(minutes);
    }),
    v.check((minute) => minute <= (last === "24:00" ? 1440 : 1439), expected),
  );
}

export function timeZone() {
  const expected = "expected the name of a time zone, like Europe/Berlin or UTC";
  return v.pipe(v.string(expected), v.check(isTimeZone, expected));
}

function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    // It throws a RangeError for unknown names; there is no other way to check.
    return false;
  }
}

/** A list, or its only item; in an environment variable several words are separated by commas. */
export function listOf<Item extends v.GenericSchema>(item: Item) {
  return v.pipe(
    v.unknown(),
    v.transform((value): readonly unknown[] => {
      if (Array.isArray(value)) return value;
      return typeof value === "string" ? value.split(",").filter((word) => word !== "") : [value];
    }),
    v.array(item),
  );
}

const EXPECTED = "expected keys and values below it";

/** An object of known keys. */
export function section<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.pipe(
    v.custom<object>(isKeysAndValues, EXPECTED),
    // If it is an object, the only possible error of the object itself is a missing key.
    v.looseObject(entries, "missing"),
    onlyKeys((key) => {
      if (known.includes(key)) return undefined;
      return `unknown key${didYouMean(key, known) || `; known are ${known.join(", ")}`}`;
    }),
  );
}

/** Values by name, with a fixed set of names. */
export function byName<Value extends v.GenericSchema>(what: string, names: readonly string[], value: Value) {
  return v.pipe(
    v.custom<object>(isKeysAndValues, EXPECTED),
    v.record(v.string(), value),
    onlyKeys((name) => (names.includes(name) ? undefined : `unknown ${what}${didYouMean(name, names)}`)),
  );
}

function isKeysAndValues(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Reports every unknown key: valibot's own strict object stops at the first. */
function onlyKeys<Input>(complaintAbout: (key: string) => string | undefined) {
  return v.rawCheck<Input>(({ dataset, addIssue }) => {
    const input: unknown = dataset.value;
    if (!isKeysAndValues(input)) return;
    for (const [key, value] of Object.entries(input)) {
      const message = complaintAbout(key);
      if (message === undefined) continue;
      addIssue({ message, path: [{ type: "object", origin: "key", input: { ...input }, key, value }] });
    }
  });
}
