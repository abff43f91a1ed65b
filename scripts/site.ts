/**
 * Builds dist/site: one page for each failure class and each document, an index of error texts, and explain in the
 * browser. Eleventy is installed below site/ by this alone, so that no other target pays for it.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { explainScript } from "./site/bundle.ts";
import { brokenLinks } from "./site/links.ts";
import { type Page, sitePages } from "./site/pages.ts";

const INPUT = "dist/site-pages";
const OUT = "dist/site";
const ELEVENTY = "site/node_modules/@11ty/eleventy/cmd.cjs";

rmSync(INPUT, { recursive: true, force: true });
rmSync(OUT, { recursive: true, force: true });
for (const page of sitePages()) write(join(INPUT, page.path, `index.${page.format}`), sourceOf(page));
execFileSync(process.execPath, [ELEVENTY, "--config=site/eleventy.config.js", "--quiet"], { stdio: "inherit" });
write(join(OUT, "explain.js"), await explainScript());
cpSync("site/style.css", join(OUT, "style.css"));
cpSync("docs/schema", join(OUT, "docs/schema"), { recursive: true });
rmSync(INPUT, { recursive: true });

const broken = brokenLinks(OUT);
if (broken.length > 0) {
  process.stderr.write(`${broken.join("\n")}\n`);
  process.exitCode = 1;
}

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** With what the layout needs, in front. */
function sourceOf({ path, title, content, script }: Page): string {
  const root = "../".repeat(path.split("/").length - 1) || "./";
  const front = { layout: "layout.njk", permalink: `/${path}index.html`, title, root, script };
  return `---json\n${JSON.stringify(front)}\n---\n${content}\n`;
}
