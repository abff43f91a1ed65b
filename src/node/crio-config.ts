import { CRIO_CONFIG } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, readRegularFile } from "../host/safe-fs.ts";
import { property } from "../host/text.ts";
import { parseToml, stringsIn } from "../host/toml.ts";
import { provePath } from "../host/trusted-path.ts";
import type { CniDirs } from "./types/runtime.ts";

const MAX_CONFIG_BYTES = 1024 * 1024;

/**
 * CRI-O does not report its CNI directories over CRI. They are in its configuration: one file, and drop-ins that
 * override it in the order of their names. Programs are run as root from these directories, so if users other than root
 * can change one of the files, all defaults apply.
 */
export function readCrioCniDirs(root: string): Partial<CniDirs> {
  let dirs: Partial<CniDirs> = {};
  for (const path of configFiles(root)) {
    const trust = provePath(root, path);
    if (trust.kind === "missing") continue;
    const file = readRegularFile(resolveOnHost(root, path, "follow"), MAX_CONFIG_BYTES);
    const parsed = file.kind === "content" ? parseToml(file.text) : undefined;
    if (trust.kind === "refused" || parsed === undefined || "problem" in parsed) return {};
    dirs = { ...dirs, ...dirsIn(property(property(parsed.table, "crio"), "network")) };
  }
  return dirs;
}

function configFiles(root: string): readonly string[] {
  const entries = entriesIn(resolveOnHost(root, CRIO_CONFIG.dropIns, "follow"));
  const names = entries
    .filter(({ kind }) => kind !== "directory")
    .map(({ name }) => name)
    .toSorted();
  return [CRIO_CONFIG.file, ...names.map((name) => `${CRIO_CONFIG.dropIns}/${name}`)];
}

function dirsIn(network: unknown): Partial<CniDirs> {
  const conf = property(network, "network_dir");
  const bin = [...stringsIn(property(network, "plugin_dirs")), ...stringsIn([property(network, "plugin_dir")])];
  const absolute = bin.filter((dir) => dir.startsWith("/")).map(withoutSlash);
  return {
    ...(typeof conf === "string" && conf.startsWith("/") ? { conf: withoutSlash(conf) } : {}),
    ...(absolute.length === 0 ? {} : { bin: absolute }),
  };
}

function withoutSlash(dir: string): string {
  return dir.replace(/(?<=.)\/+$/, "");
}
