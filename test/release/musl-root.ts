import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { cached } from "../../lab/cache.ts";
import { type CommandResult, run, runOrThrow } from "../../lab/command.ts";
import { ensureTools } from "../../lab/tools.ts";
import { emulatorFiles } from "./emulator.ts";

/** Debian 12 has musl 1.2.3, which is too old for the engine: this is Debian 13's. */
const MUSL_VERSION = "1.2.5-3.1~deb13u1";
/** No Debian package has a libstdc++ for musl. Python wheels for musl contain one. */
const WHEEL = "greenlet==3.5.6";

const ARCHITECTURES = {
  amd64: {
    machine: "x86_64",
    musl: "fd4231e1c189c0ebe01182747f83817593fefa7f6b690c484410646288b60058",
    wheel: "188bf333769b7145e2b0b4a7f09615ec550ed44d3a2a8395fb7b36f0e9901e13",
  },
  arm64: {
    machine: "aarch64",
    musl: "46cf1fcaa2d49d1573ef0ceabdb36e04a359a9a37d8e4304024f9018682e3f35",
    wheel: "5a0b2791239c99992a86c1b635b787fe2a877d9eaaa26f8891ce943832b585ae",
  },
} as const;

export type Architecture = keyof typeof ARCHITECTURES;

const DOWNLOAD_MS = 300_000;
const RUN_MS = 300_000;

/** A directory with only musl and libstdc++, or why it is not available. */
export interface MuslRoot {
  readonly root: string;
  /** A static emulator, for the executable of another CPU architecture. */
  readonly emulator?: string;
}

export async function muslRoot(arch: Architecture): Promise<MuslRoot | { readonly missing: string }> {
  if (process.arch !== "x64") return { missing: "the emulator is for x64" };
  if (process.getuid?.() !== 0) return { missing: "chroot needs root" };
  try {
    const root = await cached(`musl-${MUSL_VERSION.replace("~", "-")}-${arch}`, (dir) => fill(dir, arch));
    return arch === "amd64" ? { root } : { root, emulator: (await emulatorFiles()).emulator };
  } catch (error) {
    return { missing: `download failed: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Runs an executable with that root directory. */
export async function runInRoot(
  { root, emulator }: MuslRoot,
  executable: string,
  args: readonly string[],
): Promise<CommandResult> {
  const enter = `mount --bind "$2" "$1/unghost" && mount --bind "$3" "$1/emulator" && mount -t proc proc "$1/proc" &&
    mount --rbind /dev "$1/dev" || exit 99
    root=$1; shift 3; exec chroot "$root" "$@"`;
  const program = emulator === undefined ? ["/unghost"] : ["/emulator", "/unghost"];
  const places = [root, resolve(executable), emulator ?? resolve(executable)];
  const command = ["unshare", "--mount", "sh", "-c", enter, "sh", ...places, ...program, ...args];
  return await run(command, { env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" }, timeoutMs: RUN_MS });
}

async function fill(dir: string, arch: Architecture): Promise<void> {
  const { machine, musl } = ARCHITECTURES[arch];
  const url = `http://deb.debian.org/debian/pool/main/m/musl/musl_${MUSL_VERSION}_${arch}.deb`;
  const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
  const archive = Buffer.from(await response.arrayBuffer());
  expectSum(url, archive, musl);
  await writeFile(join(dir, "musl.deb"), archive);
  await runOrThrow(["dpkg-deb", "-x", join(dir, "musl.deb"), dir]);
  await mkdir(join(dir, "lib"));
  for (const name of [`ld-musl-${machine}.so.1`, `libc.musl-${machine}.so.1`]) {
    await symlink(`../usr/lib/${machine}-linux-musl/libc.so`, join(dir, "lib", name));
  }
  // Debian's build searches libraries elsewhere.
  await writeFile(join(dir, `etc/ld-musl-${machine}.path`), "/lib\n");
  await unpackLibstdc(dir, arch);
  for (const name of ["proc", "tmp", "dev"]) await mkdir(join(dir, name));
  for (const name of ["unghost", "emulator"]) await writeFile(join(dir, name), "");
}

async function unpackLibstdc(dir: string, arch: Architecture): Promise<void> {
  const { machine, wheel: sha256 } = ARCHITECTURES[arch];
  const wheels = join(dir, "wheels");
  const requirements = join(dir, "requirements.txt");
  await writeFile(requirements, `${WHEEL} --hash=sha256:${sha256}\n`);
  const platform = [`--platform=musllinux_1_2_${machine}`, "--python-version=3.11", "--only-binary=:all:"];
  const pip = ["python3", "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", `--dest=${wheels}`];
  await runOrThrow([...pip, ...platform, "-r", requirements], { timeoutMs: DOWNLOAD_MS });
  const [wheel = ""] = await readdir(wheels);
  const { busybox } = await ensureTools();
  await runOrThrow([busybox, "unzip", "-q", join(wheels, wheel), "greenlet.libs/*", "-d", wheels]);
  for (const library of await readdir(join(wheels, "greenlet.libs"))) {
    // libgcc under the name that libstdc++ needs.
    const name = library.startsWith("libstdc++") ? "libstdc++.so.6" : library;
    await copyFile(join(wheels, "greenlet.libs", library), join(dir, "lib", name));
  }
  await rm(wheels, { recursive: true });
}

function expectSum(what: string, content: Uint8Array, sha256: string): void {
  const sum = createHash("sha256").update(content).digest("hex");
  if (sum !== sha256) throw new Error(`${what} has the SHA-256 sum ${sum}, not ${sha256}`);
}
