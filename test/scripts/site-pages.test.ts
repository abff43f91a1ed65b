import { build } from "esbuild";
import { expect, test } from "vitest";
import { explainScript } from "../../scripts/site/bundle.ts";
import { catalogueWithoutDetection } from "../../scripts/site/catalogue.ts";
import { sitePages, withSiteLinks } from "../../scripts/site/pages.ts";
import { classes } from "../../src/classes/index.ts";
import { explainInWords } from "../../src/library/index.ts";
import { positives } from "../explain/corpus.ts";

test.each([
  ["[a](kubernetes.md)", "[a](../kubernetes/)"],
  ["[a](kubernetes.md#more)", "[a](../kubernetes/#more)"],
  ["[a](runbooks/PodsBlocked.md)", "[a](../runbooks/PodsBlocked/)"],
  ["[a](classes.md#a1-pod-gone)", "[a](../../classes/pod-gone/)"],
  ["[a](schema/doctor-report.v1.json)", "[a](../schema/doctor-report.v1.json)"],
  ["[a](../deploy/install.sh)", "a"],
  ["![a](images/session.svg)", "a"],
  ["[a](#here)", "[a](#here)"],
  ["[a](https://github.com/x/y)", "[a](https://github.com/x/y)"],
])("a link of a document, %s, is on the site %s", (link, expected) => {
  expect(withSiteLinks(link, "docs/install.md", "docs/install/")).toBe(expected);
});

test("every class and every document has one page", () => {
  const paths = sitePages().map(({ path }) => path);

  expect(new Set(paths).size).toBe(paths.length);
  expect(paths).toEqual(expect.arrayContaining(classes.map(({ id }) => `classes/${id}/`)));
});

test("the catalogue without detection answers every known line like the whole one", async () => {
  const { outputFiles } = await build({
    entryPoints: ["src/library/index.ts"],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    plugins: [catalogueWithoutDetection],
  });
  const url = `data:text/javascript;base64,${Buffer.from(outputFiles[0]?.contents ?? "").toString("base64")}`;
  const slim: { explainInWords: typeof explainInWords } = await import(url);

  for (const { line } of positives) expect(slim.explainInWords(line)).toBe(explainInWords(line));
  expect(slim.explainInWords("an ordinary line")).toBe("");
});

test("the script of the explaining page has every class, and no way to send anything", async () => {
  const script = await explainScript();

  for (const { id, signatures } of classes) if (signatures().length > 0) expect(script, id).toContain(id);
  expect(script).not.toMatch(/\bfetch\(|XMLHttpRequest|sendBeacon|WebSocket|EventSource|import\(/);
  expect(script.length).toBeLessThan(250_000);
});
