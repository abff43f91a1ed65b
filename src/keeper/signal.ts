import { setTimeout as sleep } from "node:timers/promises";

/** Wakes one loop. Raised while the loop is at work, its next wait ends at once. */
export interface Signal {
  raise(): void;
  /** Ends when it is raised, or after `mostMs`. */
  wait(mostMs?: number): Promise<void>;
}

export function signal(): Signal {
  let isRaised = false;
  let wake: () => void = () => undefined;
  return {
    raise: () => {
      isRaised = true;
      wake();
    },
    wait: async (mostMs) => {
      const raised = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (!isRaised) await Promise.race(mostMs === undefined ? [raised] : [raised, pause(mostMs)]);
      isRaised = false;
    },
  };
}

/** Does not hold the process up. */
export function pause(milliseconds: number): Promise<void> {
  return sleep(milliseconds, undefined, { ref: false });
}
