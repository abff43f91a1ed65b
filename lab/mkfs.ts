import { existsSync } from "node:fs";
import { join } from "node:path";
import { cached } from "./cache.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import type { RecordedFileSystem } from "./loop-disk.ts";
import { definedEnv } from "./tools.ts";

/** A command that formats the file named after it. */
export interface Mkfs {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const SYSTEM_DIRS = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/** With the libraries that not every Debian has. */
const PACKAGES = {
  ext4: ["e2fsprogs"],
  xfs: ["xfsprogs", "liburcu8", "libinih1"],
  btrfs: ["btrfs-progs", "liblzo2-2"],
} as const;

/** Everything is written at once: lazy initialisation by a kernel thread would run during a test. */
const OPTIONS = {
  ext4: ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-i", "65536"],
  xfs: ["-q", "-f"],
  btrfs: ["-q", "-f"],
} as const;

/** The machine's own, or Debian's, unpacked into the lab's cache. */
export async function findMkfs(kind: RecordedFileSystem): Promise<Mkfs> {
  const name = `mkfs.${kind}`;
  const found = SYSTEM_DIRS.map((dir) => join(dir, name)).find((path) => existsSync(path));
  if (found !== undefined) return { command: [found, ...OPTIONS[kind]], env: definedEnv() };
  const root = await cached(PACKAGES[kind][0], (dir) => unpackDebianPackages(PACKAGES[kind], dir));
  const architecture = process.arch === "arm64" ? "aarch64" : "x86_64";
  const libraries = join(root, "usr/lib", `${architecture}-linux-gnu`);
  return {
    command: [join(root, "sbin", name), ...OPTIONS[kind]],
    env: { ...definedEnv(), LD_LIBRARY_PATH: libraries },
  };
}
