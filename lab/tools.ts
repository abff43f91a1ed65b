import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { cached } from "./cache.ts";
import { type CommandOptions, runOrThrow } from "./command.ts";
import { unpackDebianPackages } from "./debian-packages.ts";
import { type ContainerdVersion, containerdRelease, type MultusVersion } from "./runtimes.ts";

/** The programs of a node. Unpacked into the lab's cache; nothing is installed on the machine. */
export interface Tools {
  readonly root: string;
  readonly containerd: string;
  readonly shim: string;
  readonly ctr: string;
  readonly runc: string;
  readonly cniBinDir: string;
  readonly busybox: string;
}

export interface Unavailable {
  readonly available: false;
  readonly reason: string;
}

export interface Containerd {
  readonly available: true;
  readonly binDir: string;
}

export interface Multus {
  readonly available: true;
  readonly version: MultusVersion;
  /** Thin multus: the whole plugin in one binary. */
  readonly binary: string;
  /** Thick multus: the daemon, and the shim that the runtime calls. */
  readonly daemon: string;
  readonly shim: string;
}

const PACKAGES = ["containerd", "runc", "containernetworking-plugins", "busybox-static"];
const BUILD_MS = 900_000;

/** Why no real node can run on this machine; undefined if one can. */
export function whyNoRealNode(): string | undefined {
  if (process.platform !== "linux") return `the lab's real node needs Linux; this is ${process.platform}`;
  if (process.getuid?.() !== 0) return "the lab's real node needs root: namespaces and mounts are made for it";
  return undefined;
}

/** Debian's containerd 1.6, runc, CNI plugins and a static busybox. */
export async function ensureTools(): Promise<Tools> {
  const reason = whyNoRealNode();
  if (reason !== undefined) throw new Error(`${reason}. Use the simulated runtime instead.`);
  const root = await cached("debian-tools", (dir) => unpackDebianPackages(PACKAGES, dir));
  return {
    root,
    containerd: join(root, "usr/bin/containerd"),
    shim: join(root, "usr/bin/containerd-shim-runc-v2"),
    ctr: join(root, "usr/bin/ctr"),
    runc: join(root, "usr/sbin/runc"),
    cniBinDir: join(root, "usr/lib/cni"),
    busybox: join(root, "bin/busybox"),
  };
}

/** Debian's containerd, or another one, which is built if the machine has Go. */
export async function ensureContainerd(version: ContainerdVersion = "2.3"): Promise<Containerd | Unavailable> {
  const notHere = whyNoRealNode();
  if (notHere !== undefined) return { available: false, reason: notHere };
  const { release, module } = containerdRelease(version);
  if (module === undefined) return { available: true, binDir: dirname((await ensureTools()).containerd) };
  const packages = ["containerd", "containerd-shim-runc-v2", "ctr"].map((command) => `cmd/${command}`);
  const built = await goBuild("containerd", module, `v${release}`, packages);
  return typeof built === "string" ? { available: true, binDir: built } : built;
}

export async function ensureMultus(version: MultusVersion = "4.3.0"): Promise<Multus | Unavailable> {
  const commands = ["multus", "multus-daemon", "multus-shim"];
  const packages = commands.map((command) => `cmd/${command}`);
  const built = await goBuild("multus-all", "gopkg.in/k8snetworkplumbingwg/multus-cni.v4", `v${version}`, packages);
  if (typeof built !== "string") return built;
  const [binary, daemon, shim] = commands.map((command) => join(built, command)) as [string, string, string];
  return { available: true, version, binary, daemon, shim };
}

export interface GoBuildOptions {
  readonly tags?: readonly string[];
  /** `module@version` in place of any other version, after the replace lines of the module's own go.mod. */
  readonly replaced?: readonly string[];
  /** Packages whose tests become programs: `<last part of the path>.test`. */
  readonly tests?: readonly string[];
  /** Changes source files of the module for this build: path in the module -> its changed text. */
  readonly patches?: Readonly<Record<string, (source: string) => string>>;
  /** Builds what go does not, with the module's source. */
  readonly also?: (where: { readonly moduleDir: string; readonly dir: string }) => Promise<void>;
}

/** Builds programs of a module, by package, into a directory of the cache. */
export async function goBuild(
  name: string,
  module: string,
  version: string,
  packages: readonly string[],
  { tags = [], replaced, tests = [], patches, also }: GoBuildOptions = {},
): Promise<string | Unavailable> {
  const notHere = whyNoRealNode();
  if (notHere !== undefined) return { available: false, reason: notHere };
  const go = findGo();
  if (go === undefined)
    return { available: false, reason: `${name} ${version} is built with go, and none was found here` };
  try {
    return await cached(`${name}-${version}`, async (dir) => {
      // `go install module@version` also requests the list of versions, which not every proxy has for every module; as
      // a requirement of an empty module the same code is built without that request.
      const source = join(dir, "source");
      await mkdir(source);
      const env = { ...definedEnv(), GOFLAGS: "-mod=mod -modcacherw -buildvcs=false", CGO_ENABLED: "0" };
      const options = { cwd: source, env, timeoutMs: BUILD_MS };
      await runOrThrow([go, "mod", "init", "unghost.lab/build"], options);
      if (replaced !== undefined) await replaceModules(go, `${module}@${version}`, replaced, options);
      await runOrThrow([go, "get", `${module}@${version}`], options);
      if (patches !== undefined) await patchModule(go, module, patches, options);
      const flags = ["-tags", tags.join(",")];
      const paths = packages.map((path) => `${module}/${path}`);
      await runOrThrow([go, "build", ...flags, "-o", `${dir}/`, ...paths], options);
      for (const path of tests)
        await runOrThrow([go, "test", ...flags, "-c", "-o", `${dir}/`, `${module}/${path}`], options);
      await also?.({ moduleDir: await moduleDir(go, module, options), dir });
      await rm(source, { recursive: true });
    });
  } catch (error) {
    return { available: false, reason: `${name} ${version} could not be built: ${(error as Error).message}` };
  }
}

/** go ignores the replace lines of a module that is required. */
async function replaceModules(
  go: string,
  module: string,
  replaced: readonly string[],
  options: BuildOptions,
): Promise<void> {
  const { stdout } = await runOrThrow([go, "mod", "download", "-json", module], options);
  const { GoMod } = JSON.parse(stdout) as { readonly GoMod: string };
  const { stdout: parsed } = await runOrThrow([go, "mod", "edit", "-json", GoMod], options);
  const { Replace } = JSON.parse(parsed) as { readonly Replace: readonly Replacement[] };
  const own = Replace.map(({ Old, New }) => `${Old.Path}=${New.Path}@${New.Version}`);
  const ours = replaced.map((path) => `${path.split("@")[0]}=${path}`);
  await runOrThrow([go, "mod", "edit", ...[...own, ...ours].map((one) => `-replace=${one}`)], options);
}

interface Replacement {
  readonly Old: { readonly Path: string };
  readonly New: { readonly Path: string; readonly Version: string };
}

/** Builds from a changed copy. */
async function patchModule(
  go: string,
  module: string,
  patches: NonNullable<GoBuildOptions["patches"]>,
  options: BuildOptions,
): Promise<void> {
  const copy = join(options.cwd, "patched");
  await cp(await moduleDir(go, module, options), copy, { recursive: true });
  for (const [path, change] of Object.entries(patches)) {
    const before = await readFile(join(copy, path), "utf8");
    const after = change(before);
    if (after === before) throw new Error(`the patch of ${path} changes nothing`);
    await writeFile(join(copy, path), after);
  }
  await runOrThrow([go, "mod", "edit", `-replace=${module}=./patched`], options);
}

async function moduleDir(go: string, module: string, options: BuildOptions): Promise<string> {
  const { stdout } = await runOrThrow([go, "list", "-m", "-f", "{{.Dir}}", module], options);
  return stdout.trim();
}

type BuildOptions = CommandOptions & { readonly cwd: string };

export function findGo(): string | undefined {
  const dirs = [...(process.env["PATH"] ?? "").split(":"), "/usr/local/go/bin"];
  return dirs.map((dir) => join(dir, "go")).find((path) => existsSync(path));
}

export function definedEnv(): Record<string, string> {
  const entries = Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries);
}
