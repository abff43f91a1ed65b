import { setImmediate } from "node:timers/promises";

/** Runs work as soon as one of a fixed number of slots is free. */
type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function takingTurns(atOnce: number): InTurn {
  let free = atOnce;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

/** Like Promise.all over map, with at most `limit` concurrent calls. The first failure rejects. */
export async function mapLimited<In, Out>(
  items: readonly In[],
  limit: number,
  work: (item: In) => Promise<Out>,
): Promise<Out[]> {
  const results: Out[] = [];
  let next = 0;
  async function worker(): Promise<void> {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index] as In);
    }
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/** Reading thousands of files at once would delay the runtime's answers, which arrive meanwhile. */
const SLICE_MS = 8;

/**
 * Works on one item after the other in slices of a few milliseconds, and yields to the event loop in between. Returns
 * false if the signal was aborted before the end.
 */
export async function eachPaced<T>(
  items: Iterable<T>,
  signal: AbortSignal | undefined,
  work: (item: T) => void | Promise<void>,
): Promise<boolean> {
  let sliceEnd = performance.now() + SLICE_MS;
  for (const item of items) {
    if (signal?.aborted) return false;
    const pending = work(item);
    if (pending) await pending;
    if (performance.now() < sliceEnd) continue;
    await setImmediate();
    sliceEnd = performance.now() + SLICE_MS;
  }
  return true;
}
