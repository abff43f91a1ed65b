import type { Stats } from "node:fs";
import { CNI_CONF_DIRS, CNI_GUARD_STATE_DIR } from "../host/distributions.ts";
import { unreliableMountOn } from "../host/guarded-fs.ts";
import { keepAwayFromMounts } from "../host/hung-mounts.ts";
import { resolveOnHost } from "../host/paths.ts";
import { entriesIn, fileText, statsOf } from "../host/safe-fs.ts";
import { parseJson, stringIn } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";
import { confFilesIn, pluginsIn } from "../node/cni-conf.ts";
import { fetchRuntimeInfo } from "../node/cri-facts.ts";
import { findNodeRuntime } from "../node/runtime-process.ts";
import { openCri } from "../runtime/cri.ts";

/** A directory with files of plugins, and the depth of subdirectories that contain files as well. */
export interface KeptRoot {
  /** As this process opens it. */
  readonly path: string;
  readonly depth: number;
}

export interface KeptDirectories {
  /** Each with the time of its last change. */
  readonly changedAtMs: ReadonlyMap<string, number>;
  /** There are more than the limit of watches. */
  readonly hasMore: boolean;
}

/** Each needs an inotify watch. Far more than a node has networks. */
const MAX_DIRECTORIES = 256;

/** A directory with a more recent modification time may change again without a new time. */
const SETTLED_MS = 2000;

/** Finds the existing directories, level by level, without links. Cheap enough for every second. */
export function directoryFinder(most: number = MAX_DIRECTORIES): (roots: readonly KeptRoot[]) => KeptDirectories {
  /** A directory of 20,000 files is not listed again while it has not changed. */
  const known = new Map<string, { readonly changedAtMs: number; readonly below: readonly string[] }>();

  function directoriesIn(path: string, { mtimeMs, nlink }: Stats): readonly string[] {
    // Most file systems count subdirectories in nlink; some always report 1.
    if (nlink === 2) return [];
    const before = known.get(path);
    if (before?.changedAtMs === mtimeMs) return before.below;
    const below = entriesIn(path)
      .filter(({ kind }) => kind === "directory")
      .map(({ name }) => `${path}/${name}`);
    if (Date.now() - mtimeMs > SETTLED_MS) known.set(path, { changedAtMs: mtimeMs, below });
    return below;
  }

  return (roots) => {
    keepAwayFromMounts();
    const depths = new Map<string, number>();
    const changedAtMs = new Map<string, number>();
    const open = [...roots];
    for (let root = open.shift(); root !== undefined; root = open.shift()) {
      const { path, depth } = root;
      const reached = depths.get(path) ?? -1;
      // A sync that hangs in the kernel can neither be ended nor be waited for.
      const stats = reached >= depth || unreliableMountOn(path) !== undefined ? undefined : statsOf(path);
      if (stats?.isDirectory() !== true) continue;
      if (depths.size === most && reached < 0) return { changedAtMs, hasMore: true };
      depths.set(path, depth);
      changedAtMs.set(path, stats.mtimeMs);
      if (depth > 0) open.push(...directoriesIn(path, stats).map((below) => ({ path: below, depth: depth - 1 })));
    }
    for (const path of known.keys()) {
      if (!depths.has(path)) known.delete(path);
    }
    return { changedAtMs, hasMore: false };
  };
}

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

/** Directories with files of plugins: below the CNI directory, and wherever their configurations point. */
export function pluginRoots(options: PluginRootsOptions): () => readonly KeptRoot[] {
  const { hostRoot, cniCacheDir, multusDir } = options;
  let configured: readonly KeptRoot[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  let confDir: string | undefined;
  return () => {
    keepAwayFromMounts();
    const now = performance.now();
    if (now - readAtMs > CONFIG_EVERY_MS || confDir !== options.confDir()) {
      confDir = options.confDir();
      const dirs = new Set([...(confDir === undefined ? [] : [confDir]), ...CNI_CONF_DIRS]);
      configured = [...dirs].flatMap((dir) => rootsInConfDir(hostRoot, dir));
      readAtMs = now;
    }
    const multus = multusDir === undefined ? [] : [{ path: multusDir, depth: 1 }];
    const guard = { path: `${CNI_GUARD_STATE_DIR}/attachments`, depth: 0 };
    return [{ path: cniCacheDir, depth: CACHE_DEPTH }, guard, ...multus, ...configured].map(({ path, depth }) => ({
      path: resolveOnHost(hostRoot, path, "keep"),
      depth,
    }));
  };
}

function rootsInConfDir(hostRoot: string, dir: string): readonly KeptRoot[] {
  const files = confFilesIn(entriesIn(resolveOnHost(hostRoot, dir, "follow")));
  return files.slice(0, MAX_CONFIG_FILES).flatMap((name) => {
    // A configuration that others can write must not choose which files root opens.
    if (provePath(hostRoot, `${dir}/${name}`).kind === "refused") return [];
    return rootsInConfig(parseJson(fileText(resolveOnHost(hostRoot, `${dir}/${name}`, "follow"))));
  });
}

export function rootsInConfig(config: unknown): readonly KeptRoot[] {
  return pluginsIn(config).flatMap(rootOfPlugin);
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
  const type = stringIn(plugin, "type") ?? "";
  const known = Object.hasOwn(DIRECTORY_KEYS, type) ? DIRECTORY_KEYS[type] : undefined;
  const path = stringIn(plugin, known?.key ?? "");
  return known !== undefined && path?.startsWith("/") ? [{ path, depth: known.depth }] : [];
}

/** The network configuration directory that the runtime reports; undefined while it is unknown. */
export async function runtimeConfDir(
  asked: Omit<Parameters<typeof findNodeRuntime>[0], "endpoint"> & { readonly runtimeEndpoint: string | undefined },
): Promise<string | undefined> {
  const { runtimeEndpoint: endpoint, timeoutMs } = asked;
  const found = await findNodeRuntime({ ...asked, endpoint });
  if (found.kind !== "found") return undefined;
  const cri = openCri(found.path);
  try {
    const runtimeInfo = await fetchRuntimeInfo(cri, { timeoutMs, signal: AbortSignal.timeout(timeoutMs) });
    return runtimeInfo?.cniDirs?.conf;
  } finally {
    cri.close();
  }
}
