import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 20;

/** Waits until `probe` returns a value; the timeout error names what was waited for. */
export async function until<T>(
  what: string,
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
  stepMs = STEP_MS,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > end) throw new Error(`${what}: not so after ${timeoutMs} ms`);
    await sleep(stepMs);
  }
}
