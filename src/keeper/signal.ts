import { setTimeout as sleep } from "node:timers/promises";

/** Wakes one loop. If it is raised while the loop works, the next wait ends at once. */
export interface Signal {
  raise(): void;
  /** Resolves when it is raised, or after `mostMs`. */
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

/** Does not keep the process alive. */
export function pause(milliseconds: number): Promise<void> {
  return sleep(milliseconds, undefined, { ref: false });
}
