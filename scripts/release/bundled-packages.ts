import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

/** A package of which something is inside the executable. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly licenseText: string;
}

/** Found by following the imports of the program and of its status page, not by what package.json lists. */
export async function bundledPackages(): Promise<readonly BundledPackage[]> {
  const { metafile } = await build({
    entryPoints: ["src/main.ts", "src/agent/page/main.tsx"],
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    outdir: "dist",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".html": "text", ".css": "text" },
    logLevel: "error",
  });
  const names = Object.keys(metafile.inputs).flatMap((path) => {
    const [, name] = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path) ?? [];
    return name === undefined ? [] : [name];
  });
  return [...new Set(names)].toSorted().map(describe);
}

function describe(name: string): BundledPackage {
  const dir = join("node_modules", name);
  const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as {
    readonly version: string;
    readonly license?: string;
  };
  const file = readdirSync(dir).find((entry) => /^licen[cs]e/i.test(entry));
  const license = manifest.license ?? "NOASSERTION";
  const licenseText =
    file !== undefined && existsSync(join(dir, file)) ? readFileSync(join(dir, file), "utf8") : license;
  return { name, version: manifest.version, license, licenseText: licenseText.trim() };
}
