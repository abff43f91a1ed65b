import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { applied } from "../../scripts/mutation/edits.ts";
import { STORY_MUTANTS } from "../../scripts/mutation/story-mutants.ts";

describe("the mutants of the stories", () => {
  test.each(STORY_MUTANTS)("$story: $broken, by edits that fit the source", ({ edits }) => {
    for (const { file } of edits) {
      const text = readFileSync(file, "utf8");
      expect(applied(text, file, edits)).not.toBe(text);
    }
  });

  test("every story has one", () => {
    const stories = globSync("test/{cluster,systemd,crio}/*.test.ts");
    expect([...new Set(STORY_MUTANTS.map(({ story }) => story))].toSorted()).toEqual(stories.toSorted());
  });
});

test("an edit that fits twice, or not at all, is refused", () => {
  const edit = (from: string) => [{ file: "a.ts", from, to: "" }];
  expect(() => applied("one one two", "a.ts", edit("one"))).toThrow(/exactly once/);
  expect(() => applied("one one two", "a.ts", edit("three"))).toThrow(/exactly once/);
  expect(applied("one one two", "a.ts", edit("two"))).toBe("one one ");
  expect(applied("one one two", "b.ts", edit("one"))).toBe("one one two");
});
