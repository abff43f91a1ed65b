import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { cached } from "../../../lab/cache.ts";
import { type CommandResult, run, runOrThrow } from "../../../lab/command.ts";

/** Runs systemd's own checker of unit files. It needs no running systemd. */
export type SystemdAnalyze = (...args: readonly string[]) => Promise<CommandResult>;

/** The checker with the libraries that a small Debian may lack. */
const PACKAGES = [
  "systemd",
  "libsystemd-shared",
  "libacl1",
  "libapparmor1",
  "libaudit1",
  "libblkid1",
  "libcap-ng0",
  "libcap2",
  "libcrypt1",
  "libgcrypt20",
  "libgpg-error0",
  "libip4tc2",
  "libkmod2",
  "liblz4-1",
  "liblzma5",
  "libmount1",
  "libpam0g",
  "libpcre2-8-0",
  "libseccomp2",
  "libselinux1",
  "libssl3",
  "libzstd1",
];

const DOWNLOAD_MS = 300_000;
const CHECK_MS = 60_000;

/** The machine's own, else one unpacked into the lab's cache; a reason if neither is available. */
export async function ensureSystemdAnalyze(): Promise<SystemdAnalyze | string> {
  const installed = "/usr/bin/systemd-analyze";
  if (existsSync(installed)) return analyze(installed, {});
  try {
    return await unpackedSystemdAnalyze();
  } catch (error) {
    return `systemd-analyze is not here and could not be unpacked: ${(error as Error).message}`;
  }
}

export async function unpackedSystemdAnalyze(): Promise<SystemdAnalyze> {
  const root = await cached("debian-systemd", unpack);
  const found = await readdir(join(root, "usr/lib"));
  const libraries = found
    .filter((name) => name.endsWith("-linux-gnu"))
    .flatMap((name) => [`usr/lib/${name}`, `usr/lib/${name}/systemd`, `lib/${name}`]);
  const path = libraries.map((dir) => join(root, dir)).join(":");
  const checker = analyze(join(root, "usr/bin/systemd-analyze"), { LD_LIBRARY_PATH: path });
  const version = await checker("--version");
  if (version.code !== 0) throw new Error(`the unpacked one does not run: ${version.stderr.trim()}`);
  return checker;
}

function analyze(program: string, more: Readonly<Record<string, string>>): SystemdAnalyze {
  const env = { PATH: process.env["PATH"] ?? "", LC_ALL: "C", SYSTEMD_COLORS: "0", SYSTEMD_PAGER: "", ...more };
  return (...args) => run([program, ...args], { env, timeoutMs: CHECK_MS });
}

async function unpack(dir: string): Promise<void> {
  const downloads = join(dir, "downloads");
  await mkdir(downloads);
  // apt drops its privileges for the download and warns if it cannot write here.
  await chmod(downloads, 0o777);
  const options = { cwd: downloads, timeoutMs: DOWNLOAD_MS };
  const first = await run(["apt-get", "download", "-q", ...PACKAGES], options);
  if (first.code !== 0) {
    await run(["apt-get", "update", "-q"], { timeoutMs: DOWNLOAD_MS });
    await runOrThrow(["apt-get", "download", "-q", ...PACKAGES], options);
  }
  for (const name of await readdir(downloads)) await runOrThrow(["dpkg-deb", "-x", join(downloads, name), dir]);
  await rm(downloads, { recursive: true });
}
