import { CNI_CONF_DIRS } from "../host/distributions/index.ts";
import { resolveOnHost } from "../host/paths.ts";
import { listDirectory, readRegularFile } from "../host/safe-fs.ts";
import { parseJson, property } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { isJsonObject } from "../node/cni-files.ts";
import type { KeptRoot } from "./kept-directories.ts";

export interface PluginRootsOptions {
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  readonly multusDir: string | undefined;
  /** The configuration directory of the runtime in use, once it is known. */
  readonly confDir: () => string | undefined;
}

/** Results, multus and flannel are one level below, host-local's networks two. */
const CACHE_DEPTH = 2;
/** Network plugins are rarely installed or changed. */
const CONFIG_EVERY_MS = 30_000;
const MAX_CONFIG_FILES = 64;
const MAX_CONFIG_BYTES = 1024 * 1024;
const DEEPEST_DELEGATE = 8;

/** Directories with files of plugins: below the CNI directory, and wherever their configurations point. */
export function pluginRoots(options: PluginRootsOptions): () => readonly KeptRoot[] {
  const { hostRoot, cniCacheDir, multusDir } = options;
  let configured: readonly KeptRoot[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  let confDir: string | undefined;
  return () => {
    const now = performance.now();
    if (now - readAtMs > CONFIG_EVERY_MS || confDir !== options.confDir()) {
      confDir = options.confDir();
      const dirs = new Set([...(confDir === undefined ? [] : [confDir]), ...CNI_CONF_DIRS]);
      configured = [...dirs].flatMap((dir) => rootsInConfDir(hostRoot, dir));
      readAtMs = now;
    }
    const multus = multusDir === undefined ? [] : [{ path: multusDir, depth: 1 }];
    return [{ path: cniCacheDir, depth: CACHE_DEPTH }, ...multus, ...configured].map(({ path, depth }) => ({
      path: resolveOnHost(hostRoot, path, "keep"),
      depth,
    }));
  };
}

function rootsInConfDir(hostRoot: string, dir: string): readonly KeptRoot[] {
  const listing = listDirectory(resolveOnHost(hostRoot, dir, "follow"));
  if (listing.kind !== "listed") return [];
  const files = listing.entries.filter(
    ({ name, kind }) => kind !== "directory" && /\.(conf|conflist|json)$/.test(name),
  );
  return files.slice(0, MAX_CONFIG_FILES).flatMap(({ name }) => {
    // A configuration that others can write must not choose which files root opens.
    if (provePath(hostRoot, `${dir}/${name}`).kind === "refused") return [];
    const content = readRegularFile(resolveOnHost(hostRoot, `${dir}/${name}`, "follow"), MAX_CONFIG_BYTES);
    return content.kind === "content" ? rootsInConfig(parseJson(content.text)) : [];
  });
}

/** Plugins, IPAM and delegates may be at any depth of a configuration. */
export function rootsInConfig(config: unknown, depth: number = DEEPEST_DELEGATE): readonly KeptRoot[] {
  if (depth === 0) return [];
  if (Array.isArray(config)) return config.flatMap((one: unknown) => rootsInConfig(one, depth - 1));
  if (!isJsonObject(config)) return [];
  return [
    ...rootOfPlugin(config),
    ...Object.values(config).flatMap((value: unknown) => rootsInConfig(value, depth - 1)),
  ];
}

const DIRECTORY_KEYS: Readonly<Record<string, { readonly key: string; readonly depth: number }>> = {
  // One directory per network.
  "host-local": { key: "dataDir", depth: 1 },
  flannel: { key: "dataDir", depth: 0 },
  // Contains libcni's results of its delegates.
  multus: { key: "cniDir", depth: 1 },
  "multus-shim": { key: "cniDir", depth: 1 },
  "multus-cni": { key: "cniDir", depth: 1 },
};

function rootOfPlugin(plugin: object): readonly KeptRoot[] {
  const type = property(plugin, "type");
  const known = typeof type === "string" && Object.hasOwn(DIRECTORY_KEYS, type) ? DIRECTORY_KEYS[type] : undefined;
  const path = known === undefined ? undefined : property(plugin, known.key);
  if (known === undefined || typeof path !== "string" || !path.startsWith("/")) return [];
  return [{ path, depth: known.depth }];
}
