/**
 * Builds the agent's status page: one HTML document with inline script and style, as a module that the agent serves.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };

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

const script = await bundle(`${PAGE_DIR}/main.tsx`, { UNGHOST_VERSION: JSON.stringify(manifest.version) });
const style = await bundle(`${PAGE_DIR}/page.css`, {});
const html = filled(filled(compact(readFileSync(`${PAGE_DIR}/page.html`, "utf8")), "style", style), "script", script);

const page = {
  html,
  gzip: gzipSync(html, { level: 9 }).toString("base64"),
  scriptHashes: [hashOf(script)],
  styleHashes: [hashOf(style)],
};
mkdirSync(OUT_DIR, { recursive: true });
writeFileSync(`${OUT_DIR}/page.ts`, moduleOf(page));

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

function moduleOf(made: typeof page): string {
  return `/** Made by scripts/build-page.ts. */
export const PAGE: {
  readonly html: string;
  /** The same, compressed, in base64. */
  readonly gzip: string;
  /** For a content security policy: \`sha256-…\`, without quotes. */
  readonly scriptHashes: readonly string[];
  readonly styleHashes: readonly string[];
} = ${JSON.stringify(made, undefined, 2)};
`;
}
