import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { cached } from "../../lab/cache.ts";

/** A target of the release. */
export interface ReleaseTarget {
  /** In file names, with the names of Go and OCI. */
  readonly name: string;
  /** Elsewhere than on Linux there are no nodes: the commands for an operator's machine run there. */
  readonly os: "linux" | "darwin" | "windows";
  readonly arch: "amd64" | "arm64";
  /** On Linux. */
  readonly libc?: "glibc" | "musl";
  /** The value of `bun build --target`. */
  readonly bunTarget: string;
  /** The engine's package on the npm registry; package-lock.json has its version and hash. */
  readonly enginePackage: string;
}

/**
 * There is no separate build for old CPUs: the engine for x64 runs on any, and its `baseline` package has the same
 * bytes.
 */
export const TARGETS: readonly ReleaseTarget[] = (["linux", "linux-musl", "darwin", "windows"] as const).flatMap(
  (system) => (["amd64", "arm64"] as const).map((arch) => releaseTarget(system, arch)),
);

function releaseTarget(
  system: "linux" | "linux-musl" | "darwin" | "windows",
  arch: ReleaseTarget["arch"],
): ReleaseTarget {
  const os = system === "linux-musl" ? "linux" : system;
  const musl = system === "linux-musl" ? "-musl" : "";
  const [target, engine] = arch === "amd64" ? ["x64", "x64"] : ["arm64", "aarch64"];
  const common = {
    name: `${os}-${arch}${musl}`,
    os,
    arch,
    bunTarget: `bun-${os}-${target}${musl}`,
    enginePackage: `@oven/bun-${os}-${engine}${musl}`,
  } as const;
  return os === "linux" ? { ...common, libc: musl === "" ? "glibc" : "musl" } : common;
}

/** The file name of unghost, and of bun's engine with it. */
export function executableName(name: "unghost" | "bun", { os }: Pick<ReleaseTarget, "os">): string {
  return os === "windows" ? `${name}.exe` : name;
}

export function targetNamed(name: string): ReleaseTarget {
  const target = TARGETS.find((one) => one.name === name);
  if (target === undefined) throw new Error(`${name} is none of ${TARGETS.map((one) => one.name).join(", ")}`);
  return target;
}

interface Locked {
  readonly version: string;
  readonly integrity: string;
}

/** The engine's executable for a target, downloaded once and verified with the hash in package-lock.json. */
export async function engineFor(target: ReleaseTarget): Promise<string> {
  const { enginePackage } = target;
  const { version, integrity } = locked(enginePackage);
  const dir = await cached(`engine-${enginePackage.replace("@oven/", "")}-${version}`, async (draft) => {
    const pack = ["pack", "--silent", `${enginePackage}@${version}`, "--pack-destination", draft];
    const [archive = ""] = execFileSync("npm", pack, { encoding: "utf8" }).trim().split("\n").slice(-1);
    const [algorithm = "", wanted] = integrity.split("-");
    const actual = createHash(algorithm)
      .update(readFileSync(join(draft, archive)))
      .digest("base64");
    if (actual !== wanted)
      throw new Error(`${enginePackage}@${version} is not what package-lock.json names: ${integrity}`);
    mkdirSync(join(draft, "package"), { recursive: true });
    execFileSync("tar", ["-xzf", join(draft, archive), "-C", draft]);
  });
  return join(dir, "package/bin", executableName("bun", target));
}

function locked(name: string): Locked {
  const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, Locked | undefined>;
  };
  const entry = lock.packages[`node_modules/${name}`];
  if (entry === undefined) throw new Error(`package-lock.json does not name ${name}`);
  return entry;
}

export function engineVersion(): string {
  return locked("bun").version;
}
