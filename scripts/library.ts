/**
 * Builds dist/library and packs it with `npm pack`: the read-only parts of unghost (src/library) as one ES module with types
 * and the JSON schemas, for other programs.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import manifest from "../package.json" with { type: "json" };

const OUT = "dist/library";

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
await build({
  entryPoints: ["src/library/index.ts"],
  outfile: join(OUT, "index.js"),
  bundle: true,
  format: "esm",
  platform: "node",
  target: "node20",
  external: ["valibot"],
});
const options = ["--declaration", "--emitDeclarationOnly", "--noEmit", "false", "--rewriteRelativeImportExtensions"];
const strictness = ["--strict", "--skipLibCheck", "--types", "node"];
const modules = ["--module", "NodeNext", "--target", "ES2024", "--rootDir", "src", "--outDir", join(OUT, "types")];
const files = ["--ignoreConfig", "src/library/index.ts"];
execFileSync("tsc", [...options, ...strictness, ...modules, ...files], { stdio: "inherit" });
cpSync("docs/schema", join(OUT, "schema"), { recursive: true });
cpSync("LICENSE", join(OUT, "LICENSE"));
writeFileSync(
  join(OUT, "README.md"),
  `# unghost

Failure classes of ghost pod sandboxes, recognition of their log lines, and the type of unghost's JSON report.

\`\`\`js
import { explain, failureClasses, parseNodeReport } from "unghost";

explain('failed to reserve sandbox name "web_default_1_0": name is reserved for "abc"')[0].info.title;
parseNodeReport(await readFile("report.json", "utf8")).findings;
\`\`\`
`,
);
writeFileSync(
  join(OUT, "package.json"),
  `${JSON.stringify(
    {
      name: manifest.name,
      version: manifest.version,
      description: manifest.description,
      license: manifest.license,
      type: "module",
      engines: manifest.engines,
      exports: { ".": { types: "./types/library/index.d.ts", default: "./index.js" }, "./schema/*": "./schema/*" },
      files: ["index.js", "types", "schema"],
      dependencies: { valibot: manifest.dependencies.valibot },
    },
    undefined,
    2,
  )}\n`,
);
execFileSync("npm", ["pack", "--silent", "--pack-destination", ".."], {
  cwd: OUT,
  stdio: ["ignore", "inherit", "inherit"],
});
