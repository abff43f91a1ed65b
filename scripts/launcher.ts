/** Compiles src/guard/launcher, the C program that runs in place of a CNI plugin, for both architectures. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { cached } from "../lab/cache.ts";

type Architecture = "x64" | "arm64";

const TARGETS: Readonly<Record<Architecture, string>> = { x64: "x86_64-linux-musl", arm64: "aarch64-linux-musl" };

/** The compiler comes from the npm registry, like the engine, so that a build needs no other; it has no install script. */
const COMPILER_VERSION = "0.16.0";
const COMPILER: readonly (readonly [name: string, sha512: string])[] = [
  ["linux-x64", "zVSGKmIZb5w+ot3eDdoF7GzvICN1e6mwGIAgavDiQR0stXnJu9UgOMppcIKqP5fG5ecsH6jsIf9rThd3ZI/dlQ=="],
  ["lib", "btxgqPJy93rwlcypaMHLLGjvtj/t1km+KUKjlCCxKV+UpayeI1v6ybXt4/jFI3ufDKoLe9GLKTpsX8bavMEygA=="],
];

/** Undefined where the compiler cannot be had: unghost is then built without the CNI guard, and says so. */
export async function launcherFor(architecture: Architecture): Promise<Buffer | undefined> {
  try {
    const dir = await cached(`cni-launcher-${architecture}-${sourcesHash()}`, async (draft) => {
      compile(await compiler(), architecture, join(draft, "launcher"));
    });
    return readFileSync(join(dir, "launcher"));
  } catch (error) {
    console.warn(`Building without the CNI guard: ${(error as Error).message.split("\n")[0]}`);
    return undefined;
  }
}

/** The C library that the launcher links statically; undefined where there is no compiler, and no launcher either. */
export async function linkedMusl(): Promise<{ readonly version: string; readonly licenseText: string } | undefined> {
  const zig = await compiler().catch(() => undefined);
  if (zig === undefined) return undefined;
  const musl = join(zig, "../../../lib/libc/musl");
  const [, version] = /VERSION "([\d.]+)"/.exec(readFileSync(join(musl, "src/internal/version.h"), "utf8")) ?? [];
  if (version === undefined) throw new Error(`${musl} does not say its version`);
  return { version, licenseText: readFileSync(join(musl, "COPYRIGHT"), "utf8").trim() };
}

function compile(zig: string, architecture: Architecture, out: string): void {
  const flags = ["-static", "-Os", "-s", "-Wall", "-Wextra", "-Werror"];
  const cache = join(zig, "../../../cache");
  const env = { ...process.env, ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: cache };
  execFileSync(zig, ["cc", "-target", TARGETS[architecture], ...flags, "-o", out, ...sources()], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
}

function sources(): readonly string[] {
  return globSync("src/guard/launcher/*.c").sort();
}

function sourcesHash(): string {
  const hash = createHash("sha256").update(COMPILER_VERSION);
  for (const file of globSync("src/guard/launcher/*").sort()) hash.update(readFileSync(file));
  return hash.digest("hex").slice(0, 16);
}

/** The compiler finds its library beside its own directory. */
async function compiler(): Promise<string> {
  if (process.arch !== "x64") throw new Error("its compiler is pinned for x64 only");
  const dir = await cached(`zig-${COMPILER_VERSION}`, async (draft) => {
    for (const [name, sha512] of COMPILER) {
      const pack = ["pack", "--silent", `@zigc/${name}@${COMPILER_VERSION}`, "--pack-destination", draft];
      const [archive = ""] = execFileSync("npm", pack, { encoding: "utf8" }).trim().split("\n").slice(-1);
      const actual = createHash("sha512")
        .update(readFileSync(join(draft, archive)))
        .digest("base64");
      if (actual !== sha512) throw new Error(`@zigc/${name}@${COMPILER_VERSION} has another hash than expected`);
      execFileSync("tar", ["-xzf", join(draft, archive), "-C", draft]);
      renameSync(join(draft, "package"), join(draft, name));
    }
    mkdirSync(join(draft, "cache"));
  });
  return join(dir, "linux-x64/bin/zig");
}
