import { existsSync, lstatSync } from "node:fs";
import { join } from "node:path";
import { type Reason, reason } from "../../evidence/finding.ts";
import { failureOf, runChild } from "../../host/child.ts";
import { hostPath, resolveOnHost } from "../../host/paths.ts";
import { listDirectory } from "../../host/safe-fs.ts";
import { onHostCommand } from "../../host/system-call.ts";
import { parseJson, property } from "../../host/text.ts";
import { provePath } from "../../host/trusted-path.ts";

/** For the report: the chain's DEL failed, so its plugins may have left more than the address. */
export function incompleteDel(network: CachedNetwork, failure: string, hostRoot: string): Reason {
  const interfaces = nodeInterfaces(network.result).filter((name) => isLeft(name, hostRoot));
  const plugins = network.plugins.map((plugin) => String(property(plugin, "type"))).join(", ");
  const left =
    interfaces.length === 0 ? "" : ` Still on the node: interface ${interfaces.join(", ")} (ip link delete NAME).`;
  return reason(
    "del-incomplete",
    `DEL of network ${network.name} failed, so what its plugins (${plugins}) set up may remain: ${failure}.${left}`,
  );
}

/** Interfaces of a CNI result on the node's side: the others have a namespace. */
function nodeInterfaces(result: unknown): readonly string[] {
  const listed = property(result, "interfaces");
  if (!Array.isArray(listed)) return [];
  return listed
    .filter((one) => (property(one, "sandbox") ?? "") === "")
    .map((one) => property(one, "name"))
    .filter((name): name is string => typeof name === "string" && /^[^/\s]{1,15}$/.test(name) && !/^\.+$/.test(name));
}

/** A bridge is shared with other pods: it stays on purpose. */
function isLeft(name: string, hostRoot: string): boolean {
  const dir = hostPath(hostRoot, `/sys/class/net/${name}`);
  return existsSync(dir) && !existsSync(`${dir}/bridge`);
}

interface CniDelCall {
  readonly plugin: string;
  /** The network configuration, as a plugin reads it from its standard input. */
  readonly config: object;
  readonly containerId: string;
  readonly interfaceName: string;
  /** `KEY=value;…`, as the runtime passed it on ADD: some plugins identify a pod only by it. */
  readonly args?: string;
}

export interface CniPlace {
  readonly hostRoot: string;
  readonly binDirs: readonly string[];
  readonly timeoutMs: number;
}

/** Undefined on success, else the plugin's error. */
export type CniFailure = string | undefined;

/** Calls one plugin for DEL with an empty network namespace, like a runtime for a sandbox whose namespace is gone. */
export async function cniDel(call: CniDelCall, { hostRoot, binDirs, timeoutMs }: CniPlace): Promise<CniFailure> {
  const { plugin, config, containerId, interfaceName, args } = call;
  if (!isPluginName(plugin)) return `${JSON.stringify(plugin)} is not a plugin's name: not executed`;
  const dir = binDirs.find((one) => existsSync(resolveOnHost(hostRoot, join(one, plugin), "follow")));
  if (dir === undefined) return `no ${plugin} in ${binDirs.join(", ")}`;
  const doubt = doubtOfPlugins(hostRoot, binDirs);
  if (doubt !== undefined) return doubt;
  const binary = join(dir, plugin);
  // In a container the plugin must see the host's files at their own paths.
  const command = hostRoot === "/" ? [binary] : onHostCommand(hostRoot, [binary]);
  const env = {
    CNI_COMMAND: "DEL",
    CNI_CONTAINERID: containerId,
    CNI_IFNAME: interfaceName,
    CNI_NETNS: "",
    ...(args === undefined ? {} : { CNI_ARGS: args }),
    CNI_PATH: binDirs.join(":"),
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
  const result = await runChild(command, { env, input: JSON.stringify(config), timeoutMs });
  const failure = failureOf(result);
  if (failure === undefined) return undefined;
  const [ownWords, otherWords] = [result.stdout.trim(), result.stderr.trim()];
  if (result.end.kind === "exited" && ownWords !== "") return ownWords;
  return otherWords === "" ? `${binary} ${failure}` : `${binary} ${failure}: ${otherWords}`;
}

/**
 * Like libcni (pkg/invoke, FindInPath): a name without separators, so that only files in the directories are executed.
 */
function isPluginName(type: string): boolean {
  return type !== "" && type !== "." && type !== ".." && !/[/\\\0]/.test(type);
}

/**
 * Why nothing is executed from the CNI directories; undefined if only root can change everything in them. Not only the
 * plugin: it runs others from there (its IPAM plugin, its delegates), and not all are in its configuration.
 */
function doubtOfPlugins(hostRoot: string, binDirs: readonly string[]): string | undefined {
  for (const dir of binDirs) {
    const trust = provePath(hostRoot, dir);
    if (trust.kind === "missing") continue;
    if (trust.kind === "refused") return inWords(trust);
    const listing = listDirectory(resolveOnHost(hostRoot, dir, "follow"));
    if (listing.kind === "refused") return `${dir} ${listing.reason}, so its plugins are not run`;
    if (listing.kind === "absent") continue;
    for (const { name, kind } of listing.entries) {
      const path = join(dir, name);
      if (kind === "directory" || !isExecutable(resolveOnHost(hostRoot, path, "follow"))) continue;
      const owner = provePath(hostRoot, path);
      if (owner.kind === "refused") return inWords(owner);
    }
  }
  return undefined;
}

function inWords({ detail, next }: { readonly detail: string; readonly next: string }): string {
  return `no CNI plugin is run: ${detail}. ${next}`;
}

function isExecutable(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats !== undefined && (stats.mode & 0o111) !== 0;
}

/** A network as libcni cached it with its result: enough to tear it down without the runtime. */
export interface CachedNetwork {
  readonly name: string;
  readonly cniVersion: string;
  readonly plugins: readonly object[];
  readonly result: unknown;
  /** CNI_ARGS of the ADD. */
  readonly args?: string;
}

/** Reads libcni's cache file (`cniCacheV1`), which contains the configuration as base64 and the result as JSON. */
export function parseCachedNetwork(text: string): CachedNetwork | undefined {
  const cached = parseJson(text);
  const encoded = property(cached, "config");
  if (typeof encoded !== "string") return undefined;
  const config = parseJson(Buffer.from(encoded, "base64").toString("utf8"));
  const name = property(config, "name");
  const cniVersion = property(config, "cniVersion");
  const listed = property(config, "plugins");
  const plugins = (Array.isArray(listed) ? listed : [config]).filter(
    (plugin): plugin is object => typeof property(plugin, "type") === "string",
  );
  if (typeof name !== "string" || plugins.length === 0) return undefined;
  const version = typeof cniVersion === "string" ? cniVersion : "0.2.0";
  const args = argsIn(property(cached, "cniArgs"));
  return { name, cniVersion: version, plugins, result: property(cached, "result"), ...(args === "" ? {} : { args }) };
}

/** libcni caches them as pairs. A value with a separator is dropped, because it cannot come from a runtime. */
function argsIn(pairs: unknown): string {
  if (!Array.isArray(pairs)) return "";
  return pairs
    .filter((pair): pair is [string, string] => Array.isArray(pair) && pair.length === 2 && pair.every(isPlainArg))
    .map(([key, value]) => `${key}=${value}`)
    .join(";");
}

function isPlainArg(text: unknown): boolean {
  return typeof text === "string" && !/[;=\0\n]/.test(text);
}

/** DEL through the whole chain, last plugin first, like libcni. Ends with the first failure. */
export async function replayDel(
  network: CachedNetwork,
  containerId: string,
  interfaceName: string,
  place: CniPlace,
): Promise<CniFailure> {
  const { name, cniVersion, result, args } = network;
  for (const plugin of network.plugins.toReversed()) {
    const config = { ...plugin, name, cniVersion, prevResult: result };
    const failure = await cniDel(
      { plugin: String(property(plugin, "type")), containerId, interfaceName, config, args },
      place,
    );
    if (failure !== undefined) return failure;
  }
  return undefined;
}
