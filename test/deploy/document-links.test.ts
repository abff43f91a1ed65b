import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/**/*.md")];

test.each(PAGES)("the files that %s links to exist", (page) => {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(
    ([, target = ""]) => target,
  );
  const missing = links.filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(page), target)));

  expect(missing).toEqual([]);
});

test.each(globSync("docs/adr/*.md"))("the source files that %s names exist", (page) => {
  const named = [...readFileSync(page, "utf8").matchAll(/`(src\/[^`*]+)`/g)].map(([, path = ""]) => path);

  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});
