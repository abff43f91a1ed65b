import { describe, expect, test } from "vitest";
import { answersIn } from "../../src/diagnose/explain/lines.ts";
import { unknownCauses } from "./corpus/unknown-causes.ts";

describe("a failing operation whose cause no class has", () => {
  test.each(unknownCauses)("$line", ({ line, operation, cause }) => {
    const [answer, ...others] = answersIn(line);

    expect(others).toEqual([]);
    expect(answer?.matches).toEqual([]);
    expect(answer?.failure).toMatchObject({ operation, line });
    expect(answer?.failure?.cause).toBe(cause);
  });
});
