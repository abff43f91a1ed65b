import { dirname } from "node:path";
import { CONTAINERD_SET_BY_OPERATOR, CRIO_CONFIG, k3s, rke2 } from "../../host/distributions.ts";
import { stringsIn } from "../../host/toml.ts";
import { GUARD_BIN_DIR } from "../home.ts";
import { editToml, type TomlEdit, tomlValue } from "./toml-edit.ts";

/** The running runtime, as it reports itself. */
export interface RunningRuntime {
  readonly name: string;
  readonly version: string;
  /** Its socket as a path of the host, from which the place of its configuration follows. */
  readonly socket: string;
  readonly binDirs: readonly string[];
}

/** Files of the host; undefined where there is none. */
export interface ConfigFiles {
  read(path: string): string | undefined;
}

/**
 * How the runtime gets our directory.
 * - `first`: in front of the others. What is missing in ours is found in theirs.
 * - `only`: the runtime has room for one directory. Ours then has to have every plugin.
 */
export type SearchPathMode = "first" | "only";

export type SearchPathPlan =
  | {
      readonly kind: "edit";
      readonly mode: SearchPathMode;
      readonly path: string;
      readonly before: string | undefined;
      readonly after: string;
    }
  | { readonly kind: "done"; readonly mode: SearchPathMode; readonly path: string }
  /** The directory is installed, and the operator names it to the runtime. */
  | { readonly kind: "by-hand"; readonly mode: SearchPathMode; readonly message: string; readonly next: string };

const DROP_IN = "zz-unghost-cni.toml";
const CRIO_DROP_IN = `${CRIO_CONFIG.dropIns}/99-unghost-cni.conf`;

/** The directories of k3s and rke2, which write the configuration of their containerd at each start. */
const K3S_LIKE = [
  { socket: "/k3s/", name: "k3s", dir: dirname(k3s.containerd?.config ?? "") },
  { socket: "/k3s/", name: "rke2", dir: dirname(rke2.containerd?.config ?? "") },
] as const;
const CONTAINERD_CONFIG = "/etc/containerd/config.toml";

/** Where a containerd listens whose configuration is the file above: MicroK8s, k0s and others have their own. */
const PLAIN_SOCKETS = new Set(["/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock"]);

const V3_TABLE = ["plugins", "io.containerd.cri.v1.runtime", "cni"] as const;
const V2_TABLE = ["plugins", "io.containerd.grpc.v1.cri", "cni"] as const;

export function planSearchPath(runtime: RunningRuntime, files: ConfigFiles): SearchPathPlan {
  const dirs = [GUARD_BIN_DIR, ...realDirs(runtime)];
  if (/cri-?o/i.test(runtime.name)) return planCrio(dirs, files);
  const [major = 0, minor = 0] = runtime.version.replace(/^v/, "").split(".").map(Number);
  const hasBinDirs = major > 2 || (major === 2 && minor >= 1);
  for (const { socket, name, dir } of K3S_LIKE) {
    if (runtime.socket.includes(socket) && files.read(`${dir}/config.toml`) !== undefined)
      return planGenerated(name, dir, dirs, hasBinDirs, files);
  }
  if (!PLAIN_SOCKETS.has(runtime.socket)) return otherLayout(runtime, hasBinDirs, dirs);
  return hasBinDirs ? planBinDirs(dirs, files) : planBinDir(files);
}

/** Without ours, in the runtime's order. */
export function realDirs({ binDirs }: Pick<RunningRuntime, "binDirs">): readonly string[] {
  const others = binDirs.filter((dir) => withoutSlash(dir) !== GUARD_BIN_DIR);
  return others.length > 0 ? others : ["/opt/cni/bin"];
}

export function withoutSlash(dir: string): string {
  return dir.replace(/(?<=.)\/+$/, "");
}

function planCrio(dirs: readonly string[], files: ConfigFiles): SearchPathPlan {
  return dropIn(CRIO_DROP_IN, `[crio.network]\nplugin_dirs = ${JSON.stringify(dirs)}\n`, files);
}

function planGenerated(
  name: string,
  dir: string,
  dirs: readonly string[],
  hasBinDirs: boolean,
  files: ConfigFiles,
): SearchPathPlan {
  const generated = files.read(`${dir}/config.toml`) ?? "";
  const dropIns = `${dir}/config-v3.toml.d`;
  const imports = stringsIn(tomlValue(generated, [], "imports"));
  if (hasBinDirs && imports.includes(`${dropIns}/*.toml`) && !namesBinDir(generated, V3_TABLE))
    return dropIn(`${dropIns}/${DROP_IN}`, containerdDropIn(dirs), files);
  return {
    kind: "by-hand",
    mode: hasBinDirs ? "first" : "only",
    message: `This ${name} writes a configuration of containerd that has no directory for drop-ins with bin_dirs.`,
    next: `Upgrade ${name}, or set ${keyFor(hasBinDirs, dirs)} in its config.toml.tmpl by hand.`,
  };
}

/** containerd 2.1 and later. It does not start when it finds bin_dir beside bin_dirs. */
function planBinDirs(dirs: readonly string[], files: ConfigFiles): SearchPathPlan {
  const before = files.read(CONTAINERD_CONFIG);
  const text = before ?? "version = 3\n";
  const table = tableOf(text);
  const imported = stringsIn(tomlValue(text, [], "imports"));
  const directory = imported.find((path) => path.startsWith("/") && path.endsWith("/*.toml"));
  if (directory !== undefined && table === V3_TABLE && !namesBinDir(text, table))
    return dropIn(directory.replace("*.toml", DROP_IN), containerdDropIn(dirs), files);
  const withoutOld = editToml(text, { table, key: "bin_dir", value: undefined });
  if ("problem" in withoutOld) return cannotEdit(withoutOld, dirs, "bin_dirs");
  const after = editToml(withoutOld.text, { table, key: "bin_dirs", value: dirs });
  return "problem" in after ? cannotEdit(after, dirs, "bin_dirs") : edited("first", before, after.text);
}

/** containerd before 2.1 has one directory, and before 2.0 an import replaces the whole section. */
function planBinDir(files: ConfigFiles): SearchPathPlan {
  const before = files.read(CONTAINERD_CONFIG);
  const text = before ?? "version = 2\n";
  const after = editToml(text, { table: tableOf(text), key: "bin_dir", value: GUARD_BIN_DIR });
  return "problem" in after ? cannotEdit(after, [GUARD_BIN_DIR], "bin_dir") : edited("only", before, after.text);
}

function tableOf(text: string): readonly string[] {
  return Number(tomlValue(text, [], "version")) >= 3 ? V3_TABLE : V2_TABLE;
}

function namesBinDir(text: string, table: readonly string[]): boolean {
  const named = tomlValue(text, table, "bin_dir");
  return named !== undefined && named !== "";
}

function containerdDropIn(dirs: readonly string[]): string {
  return `version = 3\n[plugins."io.containerd.cri.v1.runtime".cni]\nbin_dirs = ${JSON.stringify(dirs)}\n`;
}

function dropIn(path: string, after: string, files: ConfigFiles): SearchPathPlan {
  const before = files.read(path);
  return before === after
    ? { kind: "done", mode: "first", path }
    : { kind: "edit", mode: "first", path, before, after };
}

function edited(mode: SearchPathMode, before: string | undefined, after: string): SearchPathPlan {
  const path = CONTAINERD_CONFIG;
  return before === after ? { kind: "done", mode, path } : { kind: "edit", mode, path, before, after };
}

function otherLayout({ socket }: RunningRuntime, hasBinDirs: boolean, dirs: readonly string[]): SearchPathPlan {
  const place = CONTAINERD_SET_BY_OPERATOR.find(([known]) => socket.startsWith(known))?.[1] ?? "its configuration";
  return {
    kind: "by-hand",
    mode: hasBinDirs ? "first" : "only",
    message: `The configuration of the containerd at ${socket} is not one that unghost edits.`,
    next: `Set ${keyFor(hasBinDirs, dirs)} in the cni section of its CRI plugin by hand, in ${place}.`,
  };
}

function keyFor(hasBinDirs: boolean, dirs: readonly string[]): string {
  return hasBinDirs ? `bin_dirs = ${JSON.stringify(dirs)}` : `bin_dir = ${JSON.stringify(GUARD_BIN_DIR)}`;
}

/** Files that come from the configuration of the operating system. */
export function byHandOn(
  manager: "talos" | "nixos",
  { mode, path, after }: Extract<SearchPathPlan, { kind: "edit" }>,
): SearchPathPlan {
  const talos = { path: "/etc/cri/conf.d/20-customization.part", text: after.slice(after.indexOf("[")) };
  const { path: file, text } = manager === "talos" ? talos : { path, text: after };
  const message = `On ${manager} files come from its configuration.`;
  return { kind: "by-hand", mode, message, next: `Add to it, as ${file}:\n${text}` };
}

function cannotEdit(
  { problem }: Extract<TomlEdit, { problem: string }>,
  dirs: readonly string[],
  key: string,
): SearchPathPlan {
  const hasBinDirs = key === "bin_dirs";
  return {
    kind: "by-hand",
    mode: hasBinDirs ? "first" : "only",
    message: `${CONTAINERD_CONFIG} was not changed: ${problem}.`,
    next: `Set ${keyFor(hasBinDirs, dirs)} in the cni section of the CRI plugin by hand.`,
  };
}
