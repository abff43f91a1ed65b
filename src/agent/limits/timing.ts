import { setTimeout as sleep } from "node:timers/promises";

/** Time as a parameter, so that tests can simulate a day. */
export interface Timing {
  /** A monotonic clock in milliseconds. */
  readonly clock: () => number;
  readonly now: () => Date;
  /** Ends early, without an error, when the signal is aborted. */
  readonly sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** 0 to 1. */
  readonly random: () => number;
}

export const REAL_TIMING: Timing = {
  clock: () => performance.now(),
  now: () => new Date(),
  sleep: async (milliseconds, signal) => {
    try {
      await sleep(milliseconds, undefined, { signal, ref: false });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  },
  random: Math.random,
};
