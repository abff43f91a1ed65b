import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { positives } from "./corpus.ts";
import { pasted } from "./forms.ts";

/** `UNGHOST_VARIANTS=100000` for a thorough run. */
const VARIANTS = Number(process.env["UNGHOST_VARIANTS"] ?? 3_000);
/** The same variants in each run, unless another seed is asked for. */
const SEED = Number(process.env["UNGHOST_SEED"] ?? 1);

/** A row of a listing is not quoted in an envelope, and does not survive a change of its spaces. */
const lines = positives.filter(({ line }) => !/-[rwx-]{9}\S? \d|years ago/.test(line));

describe("a known error in any form that people paste it in", () => {
  test(
    "has the class of the plain line, or is reported as cut off",
    () => {
      fc.assert(
        fc.property(fc.constantFrom(...lines), pasted, ({ line, expect: expected }, { form, isCut }) => {
          const text = form(line);
          const answers = answersIn(text);
          const classes = answers.flatMap(({ matches }) => matches.map((match) => match.class));

          if (isCut && !classes.includes(expected ?? "")) expect(classes.slice(0, 1), text).toEqual([]);
          else expect(classes, text).toContain(expected);
        }),
        { numRuns: VARIANTS, seed: SEED },
      );
    },
    Math.max(60_000, VARIANTS * 20),
  );
});
