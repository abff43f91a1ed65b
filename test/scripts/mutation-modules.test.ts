import { globSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { MODULES, sourcesOf, testsOf } from "../../scripts/mutation/modules.ts";
import { EQUIVALENT } from "../../scripts/mutation/survivors.ts";

describe("the modules that are mutated", () => {
  test.each(MODULES)("$name: every path and pattern matches a file", ({ sources, except = [], tests }) => {
    const unmatched = [...sources, ...except, ...tests].filter((pattern) => globSync(pattern).length === 0);
    expect(unmatched).toEqual([]);
  });

  test.each(MODULES)("$name: has sources and tests", (module) => {
    expect(sourcesOf(module).length).toBeGreaterThan(0);
    expect(testsOf(module).length).toBeGreaterThan(0);
  });

  test("share no file, so that no mutant counts twice", () => {
    const all = MODULES.flatMap(sourcesOf);
    expect(all.filter((file, index) => all.indexOf(file) !== index)).toEqual([]);
  });

  test("cover every file that proves, plans, steps, moves or undoes", () => {
    const mutated = new Set(MODULES.flatMap(sourcesOf));
    const rooms = ["plan", "heal/steps", "heal/quarantine"];
    const left = rooms.flatMap((room) => globSync(`src/${room}/*.ts`)).filter((file) => !mutated.has(file));
    // What the modules stand on: copying files, and calls of plugins.
    expect(left.toSorted()).toEqual([
      "src/heal/quarantine/file-identity.ts",
      "src/heal/quarantine/save-logs.ts",
      "src/heal/steps/cni-exec.ts",
    ]);
    expect(mutated).toContain("src/evidence/liveness.ts");
  });

  test("every named survivor is in a mutated file", () => {
    const mutated = new Set(MODULES.flatMap(sourcesOf));
    expect(EQUIVALENT.filter(({ file }) => !mutated.has(file))).toEqual([]);
  });
});
