import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { classes } from "../../src/classes/index.ts";

const PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", ...globSync("docs/**/*.md")];

test.each(PAGES)("the files that %s links to exist", (page) => {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(
    ([, target = ""]) => target,
  );
  const missing = links.filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(page), target)));

  expect(missing).toEqual([]);
});

/** GitHub's anchors of headings. */
function anchorsOf(page: string): readonly string[] {
  const headings = readFileSync(page, "utf8")
    .replaceAll(/```.*?```/gs, "")
    .matchAll(/^#+ (.+)$/gm);
  return [...headings].map(([, heading = ""]) =>
    heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

test.each(PAGES)("the sections that %s links to exist", (page) => {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)];
  const missing = links.filter(([, target = "", anchor = ""]) => {
    const file = target === "" ? page : join(dirname(page), target);
    return file.endsWith(".md") && !anchorsOf(file).includes(anchor);
  });

  expect(missing.map(([link]) => link)).toEqual([]);
});

/** Sites of mentioned projects; all other links are to their code and issues. */
const OTHER_SITES = ["https://kured.dev/", "https://www.medik8s.io/"];
const GITHUB = /^https:\/\/github\.com\/[\w.-]+\/[\w.-]+(?:\/(?:issues|pull)\/\d+|\/(?:blob|tree)\/[\w./-]+)?$/;

test.each(PAGES)("%s links only to known sites, and to no invented domain", (page) => {
  const links = [...readFileSync(page, "utf8").matchAll(/\]\((\w+:[^)\s]+)\)/g)].map(([, target = ""]) => target);

  expect(links.filter((target) => !GITHUB.test(target) && !OTHER_SITES.includes(target))).toEqual([]);
});

test("every report that a failure class links to is an issue or a change on GitHub", () => {
  const links = classes.flatMap(({ id, links: of }) => of.map((link) => `${id} ${link}`));

  expect(links.length).toBeGreaterThan(100);
  expect(links.filter((link) => !GITHUB.test(link.split(" ")[1] ?? ""))).toEqual([]);
});

test.each(globSync("docs/adr/*.md"))("the source files that %s names exist", (page) => {
  const named = [...readFileSync(page, "utf8").matchAll(/`(src\/[^`*]+)`/g)].map(([, path = ""]) => path);

  expect(named.filter((path) => !existsSync(path))).toEqual([]);
});
