import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("docs/security.md names only tests that exist", () => {
  const page = readFileSync("docs/security.md", "utf8");
  const named = [...page.matchAll(/`(test\/[^`]+)`/g)].map(([, path]) => path ?? "");

  expect(named.length).toBeGreaterThan(20);
  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});
