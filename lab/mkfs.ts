import { existsSync } from "node:fs";
import { join } from "node:path";
import { cached } from "./cache.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { LoopFileSystem } from "./loop-disk.ts";
import { definedEnv } from "./tools.ts";

/** A command that formats the file named after it. */
export interface Mkfs {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const SYSTEM_DIRS = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/** mkfs.xfs' libraries, in addition to those of every Debian. */
const XFS_PACKAGES = ["xfsprogs", "liburcu8", "libinih1"];

/** Everything is written at once: lazy initialisation by a kernel thread would run during a test. */
const OPTIONS = {
  ext4: ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-i", "65536"],
  xfs: ["-q", "-f"],
} as const;

/** The machine's own, or for xfs Debian's, unpacked into the lab's cache. */
export async function findMkfs(kind: LoopFileSystem): Promise<Mkfs> {
  const name = `mkfs.${kind}`;
  const found = SYSTEM_DIRS.map((dir) => join(dir, name)).find((path) => existsSync(path));
  if (found !== undefined) return { command: [found, ...OPTIONS[kind]], env: definedEnv() };
  if (kind !== "xfs") throw new Error(`${name} was not found on this machine`);
  const root = await cached("xfsprogs", (dir) => unpackDebianPackages(XFS_PACKAGES, dir));
  const architecture = process.arch === "arm64" ? "aarch64" : "x86_64";
  const libraries = join(root, "usr/lib", `${architecture}-linux-gnu`);
  return { command: [join(root, "sbin", name), ...OPTIONS.xfs], env: { ...definedEnv(), LD_LIBRARY_PATH: libraries } };
}
