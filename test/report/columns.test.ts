import { describe, expect, test } from "vitest";
import { type Column, layOut } from "../../src/report/output.ts";
import { naturalOrder, shortAge } from "../../src/report/words.ts";

const COLUMNS: readonly Column[] = [
  { heading: "SEV", drop: "late" },
  { heading: "POD", shorten: { keep: "middle", comfortable: 10, least: 6 } },
  { heading: "CLASS", shorten: { keep: "start", comfortable: 8, least: 4 } },
  { heading: "AGE", drop: "early" },
];
const ROW = ["crit", "shop/web-frontend-0", "dead-after-crash", "14m"].map((text) => ({ text }));

describe("columns", () => {
  test.each([
    [Infinity, "crit  shop/web-frontend-0  dead-after-crash  14m"],
    [48, "crit  shop/web-frontend-0  dead-after-crash  14m"],
    [40, "crit  shop/web-frontend-0  dead-af…  14m"],
    [31, "crit  shop/…nd-0  dead-af…  14m"],
    [26, "crit  shop/…nd-0  dead-af…"],
    [18, "crit  sho…-0  dea…"],
    [12, "sho…-0  dea…"],
  ])("fit %s characters", (width, line) => {
    expect(layOut(COLUMNS, [ROW], { width, headings: false })).toEqual([line]);
  });

  test("pad by characters, with any style", () => {
    const style = (text: string) => `<${text}>`;

    expect(layOut(COLUMNS, [[{ text: "x", style }, ...ROW.slice(1)], ROW], { width: 99, headings: true })).toEqual([
      "SEV   POD                  CLASS             AGE",
      "<x>     shop/web-frontend-0  dead-after-crash  14m",
      "crit  shop/web-frontend-0  dead-after-crash  14m",
    ]);
  });
});

test("names are sorted naturally", () => {
  const names = ["b/web-10", "b/web-2", "a/web-11", "b/web-02", "b/web"];

  expect(names.toSorted(naturalOrder)).toEqual(["a/web-11", "b/web", "b/web-02", "b/web-2", "b/web-10"]);
});

test.each([
  ["2026-01-01T00:00:00Z", "0s"],
  ["2025-12-31T23:58:01Z", "119s"],
  ["2025-12-31T23:46:00Z", "14m"],
  ["2025-12-31T15:00:00Z", "9h"],
  ["2025-12-20T00:00:00Z", "12d"],
  ["2026-01-02T00:00:00Z", "0s"],
  ["never", "-"],
])("the age since %s is %s", (since, age) => {
  expect(shortAge(since, "2026-01-01T00:00:00Z")).toBe(age);
});
