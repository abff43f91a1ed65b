import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type CommandResult, run, runOrThrow } from "./command.ts";

const DOWNLOAD_MS = 300_000;

/** Unpacks Debian packages, without their dependencies, into a directory. Nothing is installed on the machine. */
export async function unpackDebianPackages(packages: readonly string[], dir: string): Promise<void> {
  const downloads = join(dir, "downloads");
  await mkdir(downloads);
  // apt drops its privileges for the download and warns if it cannot write here.
  await chmod(downloads, 0o777);
  await download(packages, downloads);
  const archives = (await readdir(downloads)).filter((name) => name.endsWith(".deb"));
  for (const archive of archives) await runOrThrow(["dpkg-deb", "-x", join(downloads, archive), dir]);
  await rm(downloads, { recursive: true });
}

async function download(packages: readonly string[], dir: string): Promise<void> {
  const attempt = (): Promise<CommandResult> =>
    run(["apt-get", "download", "-q", ...packages], { cwd: dir, timeoutMs: DOWNLOAD_MS });
  const first = await attempt().catch(aptMissing);
  if (first.code === 0) return;
  // A new machine has no package lists yet, or stale ones with files that no longer exist.
  await run(["apt-get", "update", "-q"], { timeoutMs: DOWNLOAD_MS });
  const second = await attempt();
  if (second.code === 0) return;
  throw new Error(
    `could not download ${packages.join(", ")} with apt-get, neither before nor after apt-get update: ` +
      `${second.stderr.trim().slice(-500)}. Check the network and the package sources.`,
  );
}

function aptMissing(error: unknown): never {
  throw new Error("the lab unpacks its programs from Debian packages and found no apt-get here", { cause: error });
}
