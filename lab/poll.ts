import { setTimeout as sleep } from "node:timers/promises";

const STEP_MS = 20;
/** No wait is longer than this: broken code is noticed sooner. */
const LONGEST_WAIT_MS = Number(process.env["UNGHOST_LAB_LONGEST_WAIT_S"] || Number.POSITIVE_INFINITY) * 1000;

/** Waits until `probe` returns a value; the timeout error names what was waited for, as `what` knows it by then. */
export async function until<T>(
  what: string | (() => string),
  timeoutMs: number,
  probe: () => Promise<T | undefined> | T | undefined,
  stepMs = STEP_MS,
): Promise<T> {
  const limitMs = Math.min(timeoutMs, LONGEST_WAIT_MS);
  const end = performance.now() + limitMs;
  for (;;) {
    const startedAt = performance.now();
    const value = await probe();
    if (value !== undefined) return value;
    if (performance.now() > end)
      throw new Error(`${typeof what === "string" ? what : what()}: not so after ${limitMs} ms`);
    // What is waited for needs the processor, too: a probe that is expensive is made less often.
    await sleep(Math.max(stepMs, performance.now() - startedAt));
  }
}
