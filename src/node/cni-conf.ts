import { posix } from "node:path";
import { CNI_GUARD_BIN_DIR, CNI_GUARD_PLUGIN_DIRS } from "../host/distributions.ts";
import { resolveOnHost } from "../host/paths.ts";
import { type DirEntry, failedListing, fileText, listDirectory, readRegularFile, statsOf } from "../host/safe-fs.ts";
import { absent, failed, type Oddity, read, type Source } from "../host/source.ts";
import { parseJson, printable, property, stringIn } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { DEFAULT_MULTUS_DIR, isJsonObject } from "./cni-files.ts";
import type { CniConfig, CniPlugin, MultusConfig } from "./types/cni.ts";

export interface CniConfDir {
  readonly root: string;
  readonly dir: string;
  readonly binDirs: readonly string[];
  /** containerd stops at the first file, valid or not; CRI-O skips invalid ones. */
  readonly onInvalid: "stop" | "skip";
}

/** containerd also refuses larger ones. */
const MAX_CONF_BYTES = 2 * 1024 * 1024;

const CONF_FILE = /\.(?:conf|conflist|json)$/;

/** The directories of the real plugins: what unghost finds out about a plugin it finds out about its program. */
export function withoutGuard(root: string, binDirs: readonly string[]): readonly string[] {
  const others = binDirs.filter((dir) => dir.replace(/\/+$/, "") !== CNI_GUARD_BIN_DIR);
  if (others.length > 0 || binDirs.length === 0) return others;
  const listed = fileText(resolveOnHost(root, CNI_GUARD_PLUGIN_DIRS, "follow"));
  return listed.split("\n").filter((dir) => dir.startsWith("/"));
}

/** Like the runtime, which follows links. */
export function confFilesIn(entries: readonly DirEntry[]): readonly string[] {
  return entries.filter(({ name, kind }) => kind !== "directory" && CONF_FILE.test(name)).map(({ name }) => name);
}

/**
 * The network that the runtime would use. Unlike everywhere else, links are followed, as the runtime does:
 * distributions link the directory (microk8s), the files (NixOS) and the binaries (k3s).
 */
export async function readCniConf(where: CniConfDir): Promise<Source<CniConfig>> {
  const { root, dir, binDirs, onInvalid } = where;
  const trust = provePath(root, dir);
  if (trust.kind === "refused")
    return failed(`the CNI configuration in ${dir} is not used: ${trust.detail}`, trust.next);
  const listing = listDirectory(resolveOnHost(root, dir, "follow"));
  if (listing.kind === "refused") return failedListing(dir, listing);
  const names = listing.kind === "absent" ? [] : confFilesIn(listing.entries);
  if (names.length === 0) return absent(notInitialised(dir, listing.kind === "absent"));

  const oddities: Oddity[] = binDirs.flatMap((binDir) => untrustedBinDir(root, binDir));
  for (const name of names.toSorted()) {
    const path = `${dir}/${printable(name)}`;
    const owner = provePath(root, `${dir}/${name}`);
    if (owner.kind === "refused") {
      return failed(`the CNI configuration ${path} is not used: ${owner.detail}`, owner.next);
    }
    const conf = readConfFile(root, `${dir}/${name}`);
    if (!("problem" in conf)) return read(describe(where, path, conf), oddities);
    if (onInvalid === "stop") {
      return failed(
        `the runtime takes the first file of ${dir}, and that one, ${path}, ${conf.problem}: pod networks are not initialised`,
        `repair ${path} or move it away`,
      );
    }
    oddities.push({ path, reason: conf.problem });
  }
  return failed(
    `none of the ${names.length} files in ${dir} is a network configuration: pod networks are not initialised`,
    `repair ${oddities[0]?.path ?? dir}, which ${oddities[0]?.reason ?? "is no network configuration"}`,
  );
}

/** The directory is only used to see whether a plugin is missing; unghost runs nothing from it. */
function untrustedBinDir(root: string, binDir: string): readonly Oddity[] {
  const trust = provePath(root, binDir);
  if (trust.kind !== "refused") return [];
  return [{ path: binDir, reason: `no CNI plugin is run from it: ${trust.detail}. ${trust.next}` }];
}

/**
 * When the runtime last had a reason to reload its network configuration: it watches the directory, so rewriting a file
 * with the same content counts as well.
 */
export function cniConfChangedAt(root: string, dir: string): Date | undefined {
  const path = resolveOnHost(root, dir, "follow");
  const listing = listDirectory(path);
  if (listing.kind !== "listed") return undefined;
  const times = [path, ...listing.entries.map(({ name }) => posix.join(path, name))].flatMap((one) => {
    const stats = statsOf(one);
    return stats === undefined ? [] : [one === path ? stats.mtimeMs : stats.ctimeMs];
  });
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}

function notInitialised(dir: string, missing: boolean): string {
  const seen = missing ? `there is no ${dir}` : `${dir} holds no network configuration`;
  return `${seen}: the runtime answers "cni plugin not initialized" until a network plugin installs one`;
}

interface NetworkConf {
  readonly name?: string;
  readonly chain: readonly object[];
}

interface Problem {
  readonly problem: string;
}

function readConfFile(root: string, path: string): NetworkConf | Problem {
  const content = readRegularFile(resolveOnHost(root, path, "follow"), MAX_CONF_BYTES);
  if (content.kind === "gone") return { problem: "leads nowhere" };
  if (content.kind !== "content") return { problem: content.reason };
  return parseNetworkConf(content.text, path.endsWith(".conflist"));
}

/** Parses a configuration file like libcni; the problem completes a sentence that starts with the file's name. */
export function parseNetworkConf(text: string, isList: boolean): NetworkConf | Problem {
  if (text.trim() === "") return { problem: "is empty" };
  const conf = parseJson(text);
  if (!isJsonObject(conf)) return { problem: "is not a JSON object" };
  if (!isList) {
    if (!stringIn(conf, "type")) return { problem: 'names no plugin in "type"' };
    return { name: stringIn(conf, "name"), chain: [conf] };
  }
  const name = stringIn(conf, "name");
  if (name === undefined) return { problem: 'has no "name"' };
  const chain = property(conf, "plugins");
  if (!Array.isArray(chain) || chain.length === 0) return { problem: 'lists no "plugins"' };
  if (!chain.every((plugin): plugin is object => isJsonObject(plugin) && Boolean(stringIn(plugin, "type")))) {
    return { problem: 'has a plugin without "type"' };
  }
  return { name, chain };
}

function describe(where: CniConfDir, file: string, conf: NetworkConf): CniConfig {
  const { root, dir, binDirs } = where;
  const multus = conf.chain.map((plugin) => multusConfig(plugin, file)).find((config) => config !== undefined);
  const types = new Set([
    ...conf.chain.flatMap(pluginTypes),
    ...conf.chain.flatMap((plugin) => (isMultus(plugin) ? delegateTypes(plugin) : [])),
  ]);
  const searched = multus === undefined ? binDirs : [...new Set([...binDirs, multus.binDir])];
  return {
    dir,
    binDirs,
    file,
    network: conf.name,
    plugins: [...types].map((type): CniPlugin => ({ type, binaryFound: installedIn(root, searched, type) })),
    multus,
  };
}

const DEEPEST = 8;

/** Every object of a configuration that names a plugin: those of the chain, IPAM and delegates, at any depth. */
export function pluginsIn(config: unknown, depth: number = DEEPEST): readonly object[] {
  if (depth === 0) return [];
  if (Array.isArray(config)) return config.flatMap((one: unknown) => pluginsIn(one, depth - 1));
  if (!isJsonObject(config)) return [];
  const below = Object.values(config).flatMap((value: unknown) => pluginsIn(value, depth - 1));
  return stringIn(config, "type") ? [config, ...below] : below;
}

/** A plugin and its IPAM plugin. */
function pluginTypes(plugin: unknown): readonly string[] {
  const types = [stringIn(plugin, "type"), stringIn(property(plugin, "ipam"), "type")];
  return types.flatMap((type) => (type ? [type] : []));
}

function delegateTypes(plugin: object): readonly string[] {
  const delegates: unknown = property(plugin, "delegates");
  if (!Array.isArray(delegates)) return [];
  return delegates.flatMap((delegate: unknown) => {
    const chain = property(delegate, "plugins");
    return Array.isArray(chain) ? chain.flatMap(pluginTypes) : pluginTypes(delegate);
  });
}

function isMultus(plugin: object): boolean {
  const type = stringIn(plugin, "type");
  return type === "multus" || type === "multus-shim";
}

function multusConfig(plugin: object, confFile: string): MultusConfig | undefined {
  if (!isMultus(plugin)) return undefined;
  const thick = stringIn(plugin, "type") === "multus-shim";
  return {
    confFile,
    cniDir: stringIn(plugin, "cniDir") || DEFAULT_MULTUS_DIR,
    thick,
    ...(thick ? { socket: multusSocketIn(plugin) } : {}),
    binDir: stringIn(plugin, "binDir") || "/opt/cni/bin",
  };
}

const DEFAULT_SOCKET_DIR = "/run/multus";

/** The daemon writes the configuration that contains its socket for the shim. */
export function multusSocketIn(plugin: object): string {
  const dir = stringIn(plugin, "daemonSocketDir");
  return posix.join(dir?.startsWith("/") ? dir : DEFAULT_SOCKET_DIR, "multus.sock");
}

export function installedIn(root: string, binDirs: readonly string[], type: string): boolean {
  // libcni refuses such a type before it searches for a file.
  if (type.includes("/") || type === "." || type === "..") return false;
  return binDirs.some((dir) => isExecutable(resolveOnHost(root, posix.join("/", dir, type), "follow")));
}

/** False for an unreadable directory or an invalid name: for the runtime the plugin is missing as well. */
function isExecutable(path: string): boolean {
  const stats = statsOf(path);
  return stats?.isFile() === true && (stats.mode & 0o111) !== 0;
}
