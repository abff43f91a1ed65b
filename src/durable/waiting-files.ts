import { eachPaced } from "../host/concurrency.ts";
import { listDirectory, statsOf } from "../host/safe-fs.ts";

/** Files that changed and are not yet on disk, by directory: name -> performance.now() when that was noticed. */
export type Batch = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Bounds the memory however fast files are created. */
const MAX_NOTICED = 4096;

/** Noticed files go before those found by a sweep, because a power cut would lose them. */
export function waitingFiles(mostNoticed: number = MAX_NOTICED) {
  const noticed = new Queue();
  const swept = new Queue();
  return {
    get size() {
      return noticed.size + swept.size;
    },
    /** Returns false if there are too many: a sweep has to find this file again. */
    notice: (dir: string, name: string): boolean => {
      if (noticed.size >= mostNoticed) return false;
      noticed.add(dir, name);
      return true;
    },
    addSwept: (dir: string, names: readonly string[]) => {
      for (const name of names) swept.add(dir, name);
    },
    take: (most: number): Batch => {
      const batch = new Map<string, Map<string, number>>();
      swept.moveTo(batch, noticed.moveTo(batch, most));
      return batch;
    },
  };
}

class Queue {
  readonly #files = new Map<string, Map<string, number>>();
  size = 0;

  /** The first notice counts: the file has been at risk since then. */
  add(dir: string, name: string): void {
    const names = this.#files.get(dir) ?? new Map<string, number>();
    this.#files.set(dir, names);
    if (names.has(name)) return;
    names.set(name, performance.now());
    this.size += 1;
  }

  /** Returns how many more may be moved. */
  moveTo(batch: Map<string, Map<string, number>>, most: number): number {
    let left = most;
    for (const [dir, names] of this.#files) {
      for (const [name, at] of names) {
        if (left <= 0) return 0;
        left -= 1;
        names.delete(name);
        this.size -= 1;
        const taken = batch.get(dir) ?? new Map<string, number>();
        batch.set(dir, taken.set(name, taken.get(name) ?? at));
      }
      this.#files.delete(dir);
    }
    return left;
  }
}

/**
 * Older files have been written back by the kernel: by default it starts after 30 s (vm.dirty_expire_centisecs) and
 * checks every 5 s.
 */
const YOUNG_MS = 60_000;

export type YoungFiles =
  | { readonly kind: "listed"; readonly names: readonly string[] }
  | { readonly kind: "refused"; readonly reason: string };

/** Files of a directory that changed since then, by default within the last minute; includes those from the future. */
export async function youngFiles(dir: string, sinceMs: number = Date.now() - YOUNG_MS): Promise<YoungFiles> {
  const listing = listDirectory(dir);
  if (listing.kind === "absent") return { kind: "listed", names: [] };
  if (listing.kind === "refused") return listing;
  const names: string[] = [];
  await eachPaced(listing.entries, undefined, ({ name, kind }) => {
    if (kind === "file" && changedAtMs(`${dir}/${name}`) > sinceMs) names.push(name);
  });
  return { kind: "listed", names };
}

function changedAtMs(path: string): number {
  const stats = statsOf(path);
  // If the directory was replaced meanwhile, the new one is swept separately.
  return stats === undefined ? 0 : Math.max(stats.mtimeMs, stats.ctimeMs);
}
