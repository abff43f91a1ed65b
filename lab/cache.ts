import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

/**
 * The directory of the lab's downloads and builds: beside the source in a checkout, in the user's cache elsewhere. It
 * contains the programs that a node runs as root, and unghost does not trust programs that others can replace: a root
 * whose checkout belongs to another user (sudo, most CI) keeps them apart from it.
 */
export function cacheDir(): string {
  const chosen = process.env["UNGHOST_LAB_CACHE"];
  if (chosen) return resolve(chosen);
  const checkout = checkoutDir();
  if (checkout !== undefined && isOursAlone(checkout)) return join(checkout, ".cache", "lab");
  if (process.getuid?.() === 0) return "/var/cache/unghost/lab";
  const userCache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(userCache, "unghost", "lab");
}

function isOursAlone(dir: string): boolean {
  const { uid, mode } = statSync(dir);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
}

/** The checkout of this source; undefined inside the bundled executable, which has no files around it. */
export function checkoutDir(): string | undefined {
  const dir = resolve(import.meta.dirname, "..");
  const manifest = join(dir, "package.json");
  if (!existsSync(manifest)) return undefined;
  const { name } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly name?: string };
  return name === "unghost" ? dir : undefined;
}

/**
 * The cache's directory `name`, filled by `fill` the first time. An existing directory is complete: it is filled under
 * another name and renamed at the end, and a lock makes a second process wait instead of repeating the work.
 */
export async function cached(name: string, fill: (dir: string) => Promise<void>): Promise<string> {
  const target = join(cacheDir(), name);
  if (existsSync(target)) return target;
  await mkdir(cacheDir(), { recursive: true });
  const release = await lock(join(cacheDir(), `${name}.lock`));
  try {
    if (existsSync(target)) return target;
    const draft = await mkdtemp(join(cacheDir(), `.draft-${name}-`));
    try {
      await chmod(draft, 0o755);
      await fill(draft);
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
    return target;
  } finally {
    await release();
  }
}

/** A kernel lock held by a small child process that ends with this process, so that no crash leaves it behind. */
async function lock(path: string): Promise<() => Promise<void>> {
  const holder = spawn("flock", [path, "sh", "-c", "echo locked; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise<void>((done) => holder.once("close", () => done()));
  await new Promise<void>((locked, failed) => {
    holder.stdout.once("data", () => locked());
    holder.once("error", (error) => failed(new Error(`could not lock ${path}: ${error.message}`, { cause: error })));
    holder.once("exit", (code) => failed(new Error(`could not lock ${path}: flock ended with code ${code}`)));
  });
  return async () => {
    holder.stdin.end();
    await ended;
  };
}
