/**
 * Builds the agent's status page and the dashboard of a cluster: each one HTML document with inline script and style, as a module.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };
import type { BuiltPage } from "../src/host/built-page.ts";

const PAGE_DIR = "src/agent/page";
const OUT_DIR = `${PAGE_DIR}/gen`;

/** uPlot keeps every kind of curve reachable, and the page draws one: 4 kB that no tree shaking finds. */
const onlySteppedCurves: Plugin = {
  name: "only-stepped-curves",
  setup: (page) => {
    page.onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8");
      const contents = source.replace(/^\t\(paths\.(?:bars|spline) +=.*$/gm, "");
      if (contents === source) throw new Error("uPlot's curves are no longer where they were: adapt or remove this");
      return { contents };
    });
  },
};

mkdirSync(OUT_DIR, { recursive: true });
await buildPage("page", "main.tsx");
await buildPage("dashboard", "dashboard.tsx");

/** NAME.html and NAME.css with the script of an entry. */
async function buildPage(name: string, entry: string): Promise<void> {
  const script = await bundle(`${PAGE_DIR}/${entry}`, { UNGHOST_VERSION: JSON.stringify(manifest.version) });
  const style = await bundle(`${PAGE_DIR}/${name}.css`, {});
  const document = compact(readFileSync(`${PAGE_DIR}/${name}.html`, "utf8"));
  const html = filled(filled(document, "style", style), "script", script);
  const page = {
    html,
    gzip: gzipSync(html, { level: 9 }).toString("base64"),
    scriptHashes: [hashOf(script)],
    styleHashes: [hashOf(style)],
  };
  writeFileSync(`${OUT_DIR}/${name}.ts`, moduleOf(page));
}

async function bundle(entry: string, define: Record<string, string>): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: ["es2023", "chrome123", "firefox121", "safari17.4"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    plugins: [onlySteppedCurves],
    define,
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error(`esbuild made nothing of ${entry}`);
  return file.text.trim();
}

/** Inline, so that the page is one request. The hash is computed from the exact text between the tags. */
function filled(document: string, tag: "script" | "style", content: string): string {
  if (content.includes(`</${tag}`)) throw new Error(`the page's ${tag} contains its own end tag`);
  const [before, after, ...more] = document.split(`<${tag}></${tag}>`);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`page.html must have exactly one empty <${tag}></${tag}>`);
  return `${before}<${tag}>${content}</${tag}>${after}`;
}

function compact(document: string): string {
  return document.replace(/>\n\s*</g, "><").trim();
}

/** In the format of a content security policy. */
function hashOf(content: string): string {
  return `sha256-${createHash("sha256").update(content).digest("base64")}`;
}

function moduleOf(page: BuiltPage): string {
  return `import type { BuiltPage } from "../../../host/built-page.ts";

/** Made by scripts/build-page.ts. */
export const PAGE: BuiltPage = ${JSON.stringify(page, undefined, 2)};
`;
}
