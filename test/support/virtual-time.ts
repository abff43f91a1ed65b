import type { Timing } from "../../src/agent/limits/timing.ts";

/** Time that advances only when a test lets it, shared by all its users. */
export interface VirtualTime {
  /** `wallClockOffMs`: the error of this wall clock. */
  timing(options?: { readonly wallClockOffMs?: number; readonly random?: () => number }): Timing;
  clock(): number;
  /** Sleepers are woken in order, and the work of each is done before the next. */
  pass(milliseconds: number): Promise<void>;
}

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

const START = new Date("2026-03-01T12:00:00Z");

export function virtualTime(): VirtualTime {
  let elapsedMs = 0;
  const sleepers = new Set<Sleeper>();

  function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = {
        atMs: elapsedMs + milliseconds,
        wake: () => {
          sleepers.delete(sleeper);
          signal.removeEventListener("abort", sleeper.wake);
          resolve();
        },
      };
      sleepers.add(sleeper);
      signal.addEventListener("abort", sleeper.wake);
    });
  }

  function nextUntil(endMs: number): Sleeper | undefined {
    let next: Sleeper | undefined;
    for (const sleeper of sleepers) {
      if (sleeper.atMs <= endMs && (next === undefined || sleeper.atMs < next.atMs)) next = sleeper;
    }
    return next;
  }

  return {
    clock: () => elapsedMs,
    timing: ({ wallClockOffMs = 0, random = () => 0 } = {}) => ({
      clock: () => elapsedMs,
      now: () => new Date(START.getTime() + elapsedMs + wallClockOffMs),
      sleep,
      random,
    }),
    pass: async (milliseconds) => {
      const endMs = elapsedMs + milliseconds;
      await settled();
      for (let next = nextUntil(endMs); next !== undefined; next = nextUntil(endMs)) {
        elapsedMs = Math.max(elapsedMs, next.atMs);
        next.wake();
        await settled();
      }
      elapsedMs = endMs;
    },
  };
}

/** Promises that wait for nothing real are settled before the next turn of the event loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
