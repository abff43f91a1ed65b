import { dirname, posix } from "node:path";
import { OWN_CONTAINERDS, PLAIN_CONTAINERD } from "../host/distributions.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { splitNul } from "../host/proc.ts";
import { argumentsOf } from "../host/process-memory.ts";
import { entriesIn, fileText } from "../host/safe-fs.ts";
import { property, stringIn } from "../host/text.ts";
import { parseToml, stringsIn } from "../host/toml.ts";
import { flagOf } from "./kubelet-process.ts";

/** The directories of CNI plugins that one file of containerd's configuration sets. */
export interface ConfiguredBinDirs {
  readonly file: string;
  /** The single directory, which containerd 2.4 no longer reads. */
  readonly single?: string;
  readonly list: readonly string[];
}

const MAX_IMPORTS = 50;

/** From containerd's configuration and the files that it imports; empty if there is none. Only for advice: nothing is run from them. */
export async function configuredBinDirs(root: string, pid: number | undefined): Promise<readonly ConfiguredBinDirs[]> {
  const file = await configFile(root, pid);
  const found = file === undefined ? [] : [file, ...importsOf(root, file)];
  return found.flatMap((one) => {
    const cni = cniSection(tableIn(root, one));
    const single = property(cni, "bin_dir");
    const list = stringsIn(property(cni, "bin_dirs"));
    if (list.length === 0 && (typeof single !== "string" || single === "")) return [];
    return [{ file: one, single: typeof single === "string" && single !== "" ? single : undefined, list }];
  });
}

/** Where the CNI configuration is, by containerd's own; undefined if that sets none. */
export function configuredConfDir(root: string, file: string): string | undefined {
  const dirs = [file, ...importsOf(root, file)].map((one) => stringIn(cniSection(tableIn(root, one)), "conf_dir"));
  return dirs.findLast((dir) => dir?.startsWith("/"));
}

/** The configuration and the files that it imports, where they do not parse: containerd does not start with them. */
export async function unparsableConfigs(
  root: string,
  pid: number | undefined,
): Promise<readonly { readonly file: string; readonly problem: string }[]> {
  const file = (await configPlaces(root, pid)).find((path) => textOf(root, path) !== "");
  if (file === undefined) return [];
  return [file, ...importsOf(root, file)].flatMap((one) => {
    const parsed = parseToml(textOf(root, one));
    return "problem" in parsed ? [{ file: one, problem: parsed.problem }] : [];
  });
}

/** The running process names it; else the one of the distribution whose file exists. */
async function configFile(root: string, pid: number | undefined): Promise<string | undefined> {
  return (await configPlaces(root, pid)).find((path) => tableIn(root, path) !== undefined);
}

async function configPlaces(root: string, pid: number | undefined): Promise<readonly string[]> {
  const cmdline = pid === undefined ? undefined : await argumentsOf(hostPath(root, `/proc/${pid}`));
  const argv = cmdline?.kind === "content" ? splitNul(cmdline.text) : [];
  const named = flagOf(argv, "config") ?? flagOf(argv, "c");
  const places = [named, ...OWN_CONTAINERDS.map(({ config }) => config), PLAIN_CONTAINERD.config];
  return places.flatMap((path) => (path?.startsWith("/") === true ? [path] : []));
}

function textOf(root: string, path: string): string {
  return fileText(resolveOnHost(root, path, "follow"));
}

function tableIn(root: string, path: string): object | undefined {
  const text = textOf(root, path);
  const parsed = text === "" ? undefined : parseToml(text);
  return parsed !== undefined && "table" in parsed ? parsed.table : undefined;
}

/** Patterns such as `/etc/containerd/conf.d/*.toml`; containerd reads the files in the order of their names. */
function importsOf(root: string, file: string): readonly string[] {
  const patterns = stringsIn(property(tableIn(root, file), "imports")).map((one) => posix.resolve(dirname(file), one));
  return patterns
    .flatMap((pattern) => {
      const [dir, name] = [posix.dirname(pattern), posix.basename(pattern)];
      const entries = entriesIn(resolveOnHost(root, dir, "follow")).map((entry) => entry.name);
      const literal = name.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
      const matches = new RegExp(`^${literal}$`);
      return entries
        .filter((entry) => matches.test(entry))
        .toSorted()
        .map((entry) => `${dir}/${entry}`);
    })
    .slice(0, MAX_IMPORTS);
}

/** Version 3 of the configuration, version 2, and the plain names of version 1. */
const CRI_PLUGINS = ["io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri", "cri"];

function cniSection(table: object | undefined): unknown {
  const plugins = property(table, "plugins");
  return CRI_PLUGINS.map((name) => property(property(plugins, name), "cni")).find((cni) => cni !== undefined);
}
