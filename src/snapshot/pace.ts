import { setImmediate } from "node:timers/promises";

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
