import { setImmediate } from "node:timers/promises";

/** Reading thousands of files without a break would hold up the answers of the runtime, which arrive meanwhile. */
const SLICE_MS = 8;

/**
 * Does the work for one item after the other in slices of a few milliseconds, and lets everything else have its turn
 * between them. Answers false when the signal came before the end.
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
