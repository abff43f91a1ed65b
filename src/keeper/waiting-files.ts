/** Files that changed and are not yet on disk, by directory: name -> performance.now() when that was noticed. */
export type Batch = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** Noticed files go before those found by a sweep, because a power cut would lose them. */
export interface WaitingFiles {
  readonly size: number;
  /** Returns false if there are too many: a sweep has to find this file again. */
  notice(dir: string, name: string): boolean;
  addSwept(dir: string, names: readonly string[]): void;
  take(most: number): Batch;
}

/** Bounds the memory however fast files are created. */
const MAX_NOTICED = 4096;

export function waitingFiles(mostNoticed: number = MAX_NOTICED): WaitingFiles {
  const noticed = new Queue();
  const swept = new Queue();
  return {
    get size() {
      return noticed.size + swept.size;
    },
    notice: (dir, name) => {
      if (noticed.size >= mostNoticed) return false;
      noticed.add(dir, name);
      return true;
    },
    addSwept: (dir, names) => {
      for (const name of names) swept.add(dir, name);
    },
    take: (most) => {
      const batch = new Map<string, Map<string, number>>();
      noticed.moveTo(batch, most);
      swept.moveTo(batch, most - countIn(batch));
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

  moveTo(batch: Map<string, Map<string, number>>, most: number): void {
    let left = most;
    for (const [dir, names] of this.#files) {
      for (const [name, at] of names) {
        if (left <= 0) return;
        left -= 1;
        names.delete(name);
        this.size -= 1;
        const taken = batch.get(dir) ?? new Map<string, number>();
        batch.set(dir, taken.set(name, taken.get(name) ?? at));
      }
      this.#files.delete(dir);
    }
  }
}

function countIn(batch: Batch): number {
  return [...batch.values()].reduce((sum, names) => sum + names.size, 0);
}
