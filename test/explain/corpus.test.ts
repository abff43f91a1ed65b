import { describe, expect, test } from "vitest";
import { couldConcernSandboxes } from "../../src/classes/index.ts";
import { explainText } from "../../src/diagnose/explain/lines.ts";
import { recognise } from "../../src/diagnose/explain/recognise.ts";
import { corpus, negatives, positives } from "./corpus.ts";

describe("the corpus", () => {
  test("has enough lines", () => {
    expect(corpus.length).toBeGreaterThanOrEqual(250);
    expect(negatives.length).toBeGreaterThanOrEqual(60);
  });

  test.each(positives.map((one) => [one.expect, one.line, one.also ?? []] as const))(
    "%s: %s",
    (expected, line, also) => {
      const found = recognise(line).map((match) => match.class);

      expect(found[0]).toBe(expected);
      expect(found).toEqual(expect.arrayContaining([...also]));
    },
  );

  test.each(negatives.map((one) => one.line))("is not a ghost: %s", (line) => {
    expect(recognise(line)).toEqual([]);
  });

  test("the log filter passes every line that a signature would match", () => {
    for (const { line } of positives) expect(couldConcernSandboxes(line), line).toBe(true);
  });

  test("ambiguous classes of one line each describe what would decide", () => {
    for (const { line, also } of positives) {
      if (also === undefined) continue;
      for (const match of recognise(line)) expect(match.decides, line).toBeTruthy();
    }
  });

  test("all ordinary lines together are not a ghost", () => {
    expect(explainText(negatives.map((one) => one.line).join("\n\n"))).toEqual([]);
  });
});
