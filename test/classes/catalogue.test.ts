import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Category } from "../../src/classes/failure-class.ts";
import { classById, classes } from "../../src/classes/index.ts";
import { normalise } from "../../src/logs/text.ts";
import { positives } from "../explain/corpus.ts";

const LETTERS: Readonly<Record<Category, string>> = {
  "creation-blocked": "A",
  "removal-fails": "B",
  leak: "C",
  "runtime-down": "D",
  "left-behind": "S",
  storage: "V",
  "other-runtime": "O",
  "not-a-failure": "N",
};

const defined = globSync("src/classes/*.ts").flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(/^export const \w+: ClassDefinition = \{\n {2}id: "([^"]+)"/gm)].map(
    ([, id = ""]) => id,
  ),
);

describe("class catalogue", () => {
  test("lists every defined class once", () => {
    expect(classes.map(({ id }) => id).toSorted()).toEqual(defined.toSorted());
  });

  test("what the plan treats without a detector is of exactly one class each", () => {
    const adopting = classes.flatMap(({ adopts }) => (adopts === undefined ? [] : [adopts]));
    expect(adopting.toSorted()).toEqual(["all-dead", "interrupted-removals", "unknown-causes"]);
  });

  test("numbers the classes of each letter from 1 without a gap", () => {
    for (const [letter, ofLetter] of Map.groupBy(classes, ({ code }) => code.charAt(0))) {
      const numbers = ofLetter.map(({ code }) => Number(code.slice(1))).toSorted((one, other) => one - other);
      expect(numbers, letter).toEqual(numbers.map((_, index) => index + 1));
    }
  });

  test.each(classes.map((one) => [one.id, one] as const))("%s has all required fields", (id, one) => {
    expect(id).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/);
    expect(classById(id)).toBe(one);
    const shows = "how" in one.inSnapshot ? one.inSnapshot.how : one.inSnapshot.why;
    for (const text of [one.title, one.explanation, one.mechanism, shows, one.versions, one.danger, ...one.byHand]) {
      expect(text.trim().length).toBeGreaterThan(3);
    }
    expect(one.byHand.length).toBeGreaterThan(0);
    expect(one.links.length).toBeGreaterThan(0);
    for (const link of one.links)
      expect(link).toMatch(/^https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/(?:issues|pull|tree)\//);
    if (one.treatment.mode !== "none") expect(one.treatment.steps.length).toBeGreaterThan(0);
  });

  test.each(classes.map((one) => [one.id, one.affected] as const))(
    "%s reports since and until when, and what ends it",
    (_, { since, until, ends }) => {
      for (const text of [since, until, ends]) expect(text.trim()).toBe(text);
      expect(since).toMatch(/\S{3}/);
      expect(until).toMatch(/^open$|\d|^not known/);
      expect(ends).toMatch(/^[A-Zc].{8,}\.$/);
    },
  );

  test("every automatic class lists what must be proven first", () => {
    for (const one of classes.filter((each) => each.treatment.mode === "automatic")) {
      expect(one.treatment.gates.length, one.id).toBeGreaterThan(0);
    }
  });

  test("a class is visible in a snapshot exactly when it has a detect function", () => {
    for (const one of classes) {
      // Kept sandboxes are listed as such, never as a finding; what logs report is read for all classes at once.
      if (one.adopts === "all-dead" || one.adopts === "unknown-causes") continue;
      expect((one.detect ?? one.detectAmong) !== undefined, one.id).toBe("how" in one.inSnapshot);
    }
  });

  test("a class that no snapshot shows is never automatic", () => {
    const promised = classes.filter((one) => one.treatment.mode === "automatic" && "why" in one.inSnapshot);
    expect(promised.map(({ id }) => id)).toEqual([]);
  });

  test("the code of a class has the letter of its category", () => {
    for (const { id, code, category } of classes) expect(code.charAt(0), id).toBe(LETTERS[category]);
  });

  test("log fragments are lower case, and each class with signatures has some", () => {
    for (const { id, logFragments, signatures } of classes) {
      expect(logFragments.length > 0, id).toBe(signatures().length > 0);
      for (const fragment of logFragments) expect(fragment, id).toBe(fragment.toLowerCase());
    }
  });

  test("signatures are lower case and unquoted, like the text they are tested against", () => {
    for (const one of classes) {
      for (const { pattern, confidence, text } of one.signatures()) {
        expect(pattern.flags, one.id).toBe("");
        expect(pattern.source, one.id).not.toMatch(/["'`]|(?<!\\)[A-Z]/);
        expect(pattern.source, one.id).not.toMatch(/(?<!\\)\.[*+]|\][*+]|\)[*+]|\\[SsWw][*+]/);
        expect(confidence).toBeGreaterThan(0);
        expect(confidence).toBeLessThanOrEqual(1);
        expect(text.length).toBeGreaterThan(3);
      }
    }
  });

  test("every signature matches a line of the corpus", () => {
    const texts = positives.map((one) => normalise(one.line));

    for (const one of classes) {
      for (const signature of one.signatures()) {
        const met = texts.some(
          (text) =>
            signature.pattern.test(text) &&
            (signature.within?.test(text) ?? true) &&
            !(signature.unless?.test(text) ?? false),
        );
        expect(met, `${one.id}: ${signature.text}`).toBe(true);
      }
    }
  });

  test("docs/classes.md is current", () => {
    const script = fileURLToPath(new URL("../../scripts/class-docs.ts", import.meta.url));

    execFileSync(process.execPath, [script, "--check"]);

    expect(readFileSync(new URL("../../docs/classes.md", import.meta.url), "utf8")).toContain("# Failure classes");
  });
});
