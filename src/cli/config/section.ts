import * as v from "valibot";
import { didYouMean } from "./suggest.ts";

const EXPECTED = "expected keys and values below it";

/** An object of known keys. */
export function section<const Entries extends v.ObjectEntries>(entries: Entries) {
  const known = Object.keys(entries);
  return v.pipe(
    v.custom<object>(isKeysAndValues, EXPECTED),
    // Once it is an object, all that can be wrong with the object itself is a key that is not there.
    v.looseObject(entries, "missing"),
    onlyKeys((key) => {
      if (known.includes(key)) return undefined;
      return `unknown key${didYouMean(key, known) || `; known are ${known.join(", ")}`}`;
    }),
  );
}

/** Values by name, where any of these names may stand. */
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

/** Complains of every key that does not belong there: valibot's own strict object stops at the first. */
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
