import { setTimeout as sleepFor } from "node:timers/promises";

/** Ends early, without an error, when the signal is aborted. Keeps no process alive. */
export async function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  await sleepFor(milliseconds, undefined, { signal, ref: false }).catch(() => undefined);
}

export interface PollOptions {
  readonly everyMs: number;
  readonly timeoutMs: number;
  /** No further probe after it. */
  readonly stop?: AbortSignal;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
}

/** Probes until a probe returns a value. Undefined after the timeout, or when it was stopped. */
export async function pollUntil<T>(
  probe: () => Promise<T | undefined>,
  { everyMs, timeoutMs, stop, sleep }: PollOptions,
): Promise<T | undefined> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline && stop?.aborted !== true) {
    const value = await probe();
    if (value !== undefined) return value;
    await sleep(everyMs);
  }
  return undefined;
}
