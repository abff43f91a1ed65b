/**
 * Builds dist/packages: .deb and .rpm for amd64 and arm64 from the executables of `make release`, with nfpm, which is
 * built with Go into the lab's cache; and makes it a repository for apt and dnf. The build is reproducible, but for
 * Release and the signatures.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { stringify } from "yaml";
import { goBuild } from "../lab/tools.ts";
import manifest from "../package.json" with { type: "json" };
import { bundledPackages } from "./release/bundled-packages.ts";
import { engineVersion } from "./release/engines.ts";
import { MAINTAINER, PACKAGE_TIME, type Packager, packageFiles } from "./release/package-files.ts";
import { addRepository } from "./release/package-repository.ts";
import { DEB_SCRIPTS, type PackageScripts, RPM_SCRIPTS } from "./release/package-scripts.ts";
import { publishedAt } from "./release/published-at.ts";

/** Later ones need modules that not every proxy has. */
const NFPM_VERSION = "v2.43.4";
const OUT = resolve(process.argv[2] ?? "dist/packages");
const RELEASE = "dist/release";
const STAGE = mkdtempSync(join(tmpdir(), "unghost-packages-"));

const DESCRIPTION = `Finds and heals ghost pod sandboxes on Kubernetes nodes
A ghost is a pod sandbox that is dead but not gone: it keeps its name
reserved in the container runtime, or its removal fails forever, so that
its pod can never start again. unghost finds ghosts, explains them, heals
them and verifies the effect; every change is written to a journal first.`;

const nfpmDir = await goBuild("nfpm", "github.com/goreleaser/nfpm/v2", NFPM_VERSION, ["cmd/nfpm"]);
if (typeof nfpmDir !== "string") throw new Error(nfpmDir.reason);
const bundled = await bundledPackages();
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
try {
  for (const arch of ["amd64", "arm64"]) {
    for (const packager of ["deb", "rpm"] as const) buildPackage(packager, arch);
  }
} finally {
  rmSync(STAGE, { recursive: true });
}
const keyFile = process.env["PACKAGE_KEY_FILE"];
const signingKey = keyFile ? readFileSync(keyFile, "utf8") : undefined;
const { packages: url, warning } = publishedAt(process.env, manifest.version);
await addRepository({ dir: OUT, url, signingKey });
const built = readdirSync(OUT, { recursive: true, encoding: "utf8" }).filter(isReproducible);
const sums = built.toSorted().map((name) => `${sha256(readFileSync(join(OUT, name)))}  ${name}\n`);
writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
console.log(built.filter((name) => /\.(deb|rpm)$/.test(name)).join("\n"));
if (!keyFile)
  console.warn("PACKAGE_KEY_FILE is not set: the repository is not signed, and its users have to trust its address");
if (warning !== undefined) console.warn(warning);

/** Release has the time of the build, by which apt knows a later one; the signatures and the two sources have a key. */
function isReproducible(name: string): boolean {
  return /\.(deb|rpm|gz|xml)$|^Packages$/.test(name);
}

function buildPackage(packager: Packager, arch: string): void {
  const stage = join(STAGE, `${packager}-${arch}`);
  const put = (path: string, content: Uint8Array | string, mode: number): string => {
    const source = join(stage, path);
    mkdirSync(dirname(source), { recursive: true });
    writeFileSync(source, content, { mode });
    utimesSync(source, PACKAGE_TIME, PACKAGE_TIME);
    return source;
  };
  const scripts = packager === "deb" ? DEB_SCRIPTS : RPM_SCRIPTS;
  const program = readFileSync(join(RELEASE, `linux-${arch}`, "unghost"));
  const files = [
    { path: "/usr/bin/unghost", content: program, mode: 0o755 },
    ...packageFiles(packager, engineVersion(), bundled),
  ];
  const mtime = PACKAGE_TIME.toISOString();
  const config = {
    name: "unghost",
    arch,
    platform: "linux",
    version: manifest.version,
    section: "admin",
    priority: "optional",
    maintainer: MAINTAINER,
    description: DESCRIPTION,
    // Debian packages have it in their copyright file.
    ...(packager === "rpm" && { license: manifest.license }),
    homepage: "https://unghost.dev",
    depends: packager === "deb" ? ["libc6 (>= 2.17)", "init-system-helpers (>= 1.54~)"] : ["glibc >= 2.17"],
    contents: [
      // rpm removes only the directories that a package lists.
      { dst: "/usr/share/doc/unghost", type: "dir", file_info: { mode: 0o755, mtime } },
      ...files.map(({ path, content, mode }) => ({
        src: put(path, content, mode),
        dst: path,
        file_info: { mode, mtime },
      })),
    ],
    scripts: Object.fromEntries(
      Object.entries(scripts satisfies PackageScripts).map(([name, text]: [string, string]) => [
        name,
        put(`/scripts/${name}`, text, 0o755),
      ]),
    ),
    rpm: { group: "System Environment/Base", buildhost: "localhost" },
  };
  const configFile = put("/nfpm.yaml", stringify(config), 0o644);
  execFileSync(join(nfpmDir as string, "nfpm"), ["package", "-f", configFile, "-p", packager, "-t", `${OUT}/`], {
    env: { SOURCE_DATE_EPOCH: String(PACKAGE_TIME.getTime() / 1000) },
    stdio: ["ignore", "ignore", "inherit"],
  });
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
