import { lstatSync, type Stats } from "node:fs";
import { listDirectory } from "../host/safe-fs.ts";

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
export type FindDirectories = (roots: readonly KeptRoot[]) => KeptDirectories;

export function directoryFinder(most: number = MAX_DIRECTORIES): FindDirectories {
  /** A directory of 20,000 files is not listed again while it has not changed. */
  const known = new Map<string, { readonly changedAtMs: number; readonly below: readonly string[] }>();

  function directoriesIn(path: string, { mtimeMs, nlink }: Stats): readonly string[] {
    // Most file systems count subdirectories in nlink; some always report 1.
    if (nlink === 2) return [];
    const before = known.get(path);
    if (before?.changedAtMs === mtimeMs) return before.below;
    const listing = listDirectory(path);
    const entries = listing.kind === "listed" ? listing.entries : [];
    const below = entries.filter(({ kind }) => kind === "directory").map(({ name }) => `${path}/${name}`);
    if (Date.now() - mtimeMs > SETTLED_MS) known.set(path, { changedAtMs: mtimeMs, below });
    return below;
  }

  return (roots) => {
    const depths = new Map<string, number>();
    const changedAtMs = new Map<string, number>();
    const open = [...roots];
    for (let root = open.shift(); root !== undefined; root = open.shift()) {
      const { path, depth } = root;
      const reached = depths.get(path) ?? -1;
      const stats = reached >= depth ? undefined : statsOf(path);
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

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // A parent is not a directory, or cannot be searched.
    return undefined;
  }
}
