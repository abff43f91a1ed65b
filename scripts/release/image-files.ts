import { readFileSync } from "node:fs";
import { join } from "node:path";
import { cached } from "../../lab/cache.ts";
import { unpackDebianPackages } from "../../lab/debian-packages.ts";
import type { TarEntry } from "../../src/bundle/tar.ts";
import { compileExecutable } from "../executable.ts";
import { engineFor, targetNamed } from "./engines.ts";
import type { Platform } from "./oci.ts";

/** The libraries that the executable is linked to, by `readelf -d`; libgcc_s, libstdc++ and NSS are not needed. */
const LIBRARIES = ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"];

export interface Libc {
  readonly architecture: Platform["architecture"];
  readonly debianPackage: string;
  readonly directory: string;
  readonly loader: string;
  /** The path of the executable's ELF interpreter. */
  readonly loaderPath: string;
}

export const LIBCS: readonly Libc[] = [
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

/** The root directory of the image: the executable, the C library that it is linked to, licences. */
export async function imageFiles(libc: Libc, licences: string): Promise<TarEntry[]> {
  const { architecture, debianPackage, directory, loader, loaderPath } = libc;
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
  await compileExecutable({ target: target.bunTarget, engine: await engineFor(target), out: executable });
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
