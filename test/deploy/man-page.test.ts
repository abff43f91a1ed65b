import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the man page is ASCII, because man warns about other characters in the C locale", () => {
  const lines = readFileSync("docs/man/unghost.1", "utf8").split("\n");
  expect(lines.filter((line) => /[^\t\x20-\x7e]/.test(line))).toEqual([]);
});
