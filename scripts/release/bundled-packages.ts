import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { linkedMusl } from "../launcher.ts";

/** A package that is part of the executable. */
export interface BundledPackage {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly licenseText: string;
  /** Where it comes from, as in an SBOM. */
  readonly purl: string;
}

/** Found through the imports of the program and of its status page, not in package.json; and what the launcher links. */
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
  const filesOf = Map.groupBy(Object.keys(metafile.inputs), packageOf);
  const imported = [...filesOf].flatMap(([name, files]) => (name === undefined ? [] : [describe(name, files)]));
  return [...imported, ...(await linkedByLauncher())].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

async function linkedByLauncher(): Promise<readonly BundledPackage[]> {
  const musl = await linkedMusl();
  return musl === undefined
    ? []
    : [{ name: "musl", license: "MIT", purl: `pkg:generic/musl@${musl.version}`, ...musl }];
}

function packageOf(path: string): string | undefined {
  return /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
}

function describe(name: string, files: readonly string[]): BundledPackage {
  const dir = join("node_modules", name);
  const manifest = JSON.parse(readFileSync(join(dir, "package.json"), "utf8")) as {
    readonly version: string;
    readonly license?: string;
  };
  const license = manifest.license ?? "NOASSERTION";
  const file = readdirSync(dir).find((entry) => /^(?:un)?licen[cs]e/i.test(entry));
  const licenseText = file === undefined ? textWithoutFile(license, files) : readFileSync(join(dir, file), "utf8");
  if (licenseText === "")
    throw new Error(`${name} (${license}) brings no text of its licence: find it and add it here`);
  const purl = `pkg:npm/${name.replace("@", "%40")}@${manifest.version}`;
  return { name, version: manifest.version, license, licenseText: licenseText.trim(), purl };
}

/** Some packages name the Apache License and leave its text out, and have other licences at the head of their files. */
function textWithoutFile(license: string, files: readonly string[]): string {
  const heads = files.map((path) => /^(?:\/\/.*\n)+/.exec(readFileSync(path, "utf8"))?.[0] ?? "");
  const notices = new Set(heads.filter((head) => /copyright/i.test(head)).map((head) => head.replace(/^\/\/ ?/gm, "")));
  const apache = license.includes("Apache-2.0") ? [readFileSync("LICENSE", "utf8")] : [];
  return [...notices, ...apache].join("\n");
}
