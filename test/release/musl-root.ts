import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cached } from "../../lab/cache.ts";
import { type CommandResult, run, runOrThrow } from "../../lab/command.ts";
import { ensureTools } from "../../lab/tools.ts";

/** Debian 12 has musl 1.2.3, which is too old for the engine: this is Debian 13's. */
const MUSL = {
  url: "http://deb.debian.org/debian/pool/main/m/musl/musl_1.2.5-3_amd64.deb",
  sha256: "4288deaf14438e6c237491be45f10e3e7badb2e723cedfb08ff1fe687b646c84",
};
/** No Debian package has a libstdc++ for musl. Python wheels for musl bring theirs along. */
const WHEEL = {
  requirement: "greenlet==3.5.6",
  sha256: "188bf333769b7145e2b0b4a7f09615ec550ed44d3a2a8395fb7b36f0e9901e13",
};
const DOWNLOAD_MS = 300_000;
const RUN_MS = 300_000;

/** A root directory with musl and libstdc++ and nothing else, or why it cannot be had on this machine. */
export async function muslRoot(): Promise<{ readonly root: string } | { readonly missing: string }> {
  if (process.arch !== "x64") return { missing: "the loader is for x64" };
  if (process.getuid?.() !== 0) return { missing: "chroot needs root" };
  try {
    return { root: await cached("musl-root", fill) };
  } catch (error) {
    return { missing: `no musl could be downloaded: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Runs an executable with that root directory. */
export async function runInRoot(root: string, executable: string, args: readonly string[]): Promise<CommandResult> {
  const enter = `mount --bind "$2" "$1/unghost" && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" || exit 99
    root=$1; shift 2; exec chroot "$root" /unghost "$@"`;
  const command = ["unshare", "--mount", "sh", "-c", enter, "sh", root, resolve(executable), ...args];
  return await run(command, { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" }, timeoutMs: RUN_MS });
}

async function fill(dir: string): Promise<void> {
  const response = await fetch(MUSL.url, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
  const archive = Buffer.from(await response.arrayBuffer());
  expectSum(MUSL.url, archive, MUSL.sha256);
  await writeFile(join(dir, "musl.deb"), archive);
  await runOrThrow(["dpkg-deb", "-x", join(dir, "musl.deb"), dir]);
  await mkdir(join(dir, "lib"));
  await symlink("../usr/lib/x86_64-linux-musl/libc.so", join(dir, "lib/ld-musl-x86_64.so.1"));
  await symlink("../usr/lib/x86_64-linux-musl/libc.so", join(dir, "lib/libc.musl-x86_64.so.1"));
  // Debian's searches libraries elsewhere.
  await writeFile(join(dir, "etc/ld-musl-x86_64.path"), "/lib\n");
  await unpackLibstdc(dir);
  for (const name of ["proc", "tmp", "dev"]) await mkdir(join(dir, name));
  await writeFile(join(dir, "unghost"), "");
}

async function unpackLibstdc(dir: string): Promise<void> {
  const wheels = join(dir, "wheels");
  const requirements = join(dir, "requirements.txt");
  await writeFile(requirements, `${WHEEL.requirement} --hash=sha256:${WHEEL.sha256}\n`);
  const platform = ["--platform=musllinux_1_2_x86_64", "--python-version=3.11", "--only-binary=:all:"];
  const pip = ["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", `--dest=${wheels}`];
  await runOrThrow([...pip, ...platform, "-r", requirements], { timeoutMs: DOWNLOAD_MS });
  const [wheel = ""] = await readdir(wheels);
  const { busybox } = await ensureTools();
  await runOrThrow([busybox, "unzip", "-q", join(wheels, wheel), "greenlet.libs/*", "-d", wheels]);
  for (const library of await readdir(join(wheels, "greenlet.libs"))) {
    // libgcc under the name that libstdc++ asks for.
    const name = library.startsWith("libstdc++") ? "libstdc++.so.6" : library;
    await copyFile(join(wheels, "greenlet.libs", library), join(dir, "lib", name));
  }
}

function expectSum(what: string, content: Uint8Array, sha256: string): void {
  const sum = createHash("sha256").update(content).digest("hex");
  if (sum !== sha256) throw new Error(`${what} has the SHA-256 sum ${sum}, not ${sha256}`);
}
