/**
 * Builds dist/image (an OCI layout for amd64 and arm64) and dist/unghost-image.tar, without a container engine. The image
 * has the executable, the C library that it is linked to, licences, and nothing else: no shell.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cached } from "../lab/cache.ts";
import { unpackDebianPackages } from "../lab/debian-packages.ts";
import type { TarEntry } from "../lab/tar.ts";
import manifest from "../package.json" with { type: "json" };
import { compileExecutable } from "./executable.ts";
import { bundledPackages } from "./release/bundled-packages.ts";
import { thirdPartyLicences } from "./release/documents.ts";
import { engineFor, engineVersion, targetNamed } from "./release/engines.ts";
import { layoutArchive, ociLayout, type Platform } from "./release/oci.ts";

const OUT = "dist/image";
const ARCHIVE = "dist/unghost-image.tar";
const NAME = process.env["UNGHOST_IMAGE"] ?? "registry.example/unghost";

/** What the executable is linked to, by `readelf -d`; libgcc_s, libstdc++ and the name service are not among it. */
const LIBRARIES = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"];

interface Libc {
  readonly architecture: Platform["architecture"];
  readonly debianPackage: string;
  readonly directory: string;
  readonly loader: string;
  /** The path of the loader that the executable names. */
  readonly loaderPath: string;
}

const LIBCS: readonly Libc[] = [
  {
    architecture: "amd64",
    debianPackage: "libc6",
    directory: "lib/x86_64-linux-gnu",
    loader: "ld-linux-x86-64.so.2",
    loaderPath: "lib64/ld-linux-x86-64.so.2",
  },
  {
    architecture: "arm64",
    debianPackage: "libc6-arm64-cross",
    directory: "usr/aarch64-linux-gnu/lib",
    loader: "ld-linux-aarch64.so.1",
    loaderPath: "lib/ld-linux-aarch64.so.1",
  },
];

const licences = thirdPartyLicences(engineVersion(), await bundledPackages());
const platforms: Platform[] = [];
for (const libc of LIBCS) platforms.push({ architecture: libc.architecture, files: await filesFor(libc) });

const files = ociLayout({
  name: NAME,
  version: manifest.version,
  entrypoint: ["/usr/bin/unghost"],
  env: ["PATH=/usr/bin"],
  labels: {
    "org.opencontainers.image.title": manifest.name,
    "org.opencontainers.image.description": manifest.description,
    "org.opencontainers.image.licenses": `${manifest.license} AND MIT AND LGPL-2.1-or-later`,
    "org.opencontainers.image.version": manifest.version,
  },
  platforms,
});
rmSync(OUT, { recursive: true, force: true });
for (const [path, content] of files) {
  mkdirSync(dirname(join(OUT, path)), { recursive: true });
  writeFileSync(join(OUT, path), content);
}
writeFileSync(ARCHIVE, layoutArchive(files));
const bytes = [...files.values()].reduce((sum, { length }) => sum + length, 0);
console.log(`${NAME}:${manifest.version}: ${platforms.length} platforms, ${(bytes / 1e6).toFixed(1)} MB compressed`);

async function filesFor({ architecture, debianPackage, directory, loader, loaderPath }: Libc): Promise<TarEntry[]> {
  const root = await cached(`image-${debianPackage}`, (dir) => unpackDebianPackages([debianPackage], dir));
  const library = (name: string) => readFileSync(join(root, directory, name));
  const copyright = readFileSync(join(root, "usr/share/doc", debianPackage, "copyright"));
  const directories = [
    "dev",
    "etc",
    "host",
    "lib",
    "lib64",
    "proc",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/share",
  ];
  const executable = `dist/image-executables/${architecture}/unghost`;
  const target = targetNamed(`linux-${architecture}`);
  compileExecutable({ target: target.bunTarget, engine: await engineFor(target), out: executable });
  return [
    ...directories.map((path) => ({ type: "directory", path: `${path}/`, mode: 0o755 }) as const),
    { type: "directory", path: "usr/share/licences/", mode: 0o755 },
    file("etc/passwd", Buffer.from("root:x:0:0:root:/:/nowhere\n"), 0o644),
    file(loaderPath, library(loader), 0o755),
    ...LIBRARIES.map((name) => file(`lib/${name}`, library(name), 0o644)),
    file("usr/bin/unghost", readFileSync(executable), 0o755),
    file("usr/share/licences/unghost", readFileSync("LICENSE"), 0o644),
    file("usr/share/licences/third-party", Buffer.from(licences), 0o644),
    file("usr/share/licences/glibc", copyright, 0o644),
  ];
}

function file(path: string, content: Uint8Array, mode: number): TarEntry {
  return { type: "file", path, content, mode };
}
