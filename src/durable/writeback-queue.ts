import { setTimeout as sleep } from "node:timers/promises";
import { startWriteback } from "./sync-entries.ts";

/** Starts writeback of noticed files soon, however long the current sync takes. */
export interface WritebackQueue {
  notice(dir: string, name: string): void;
  close(): void;
}

/** A new file is noticed before it has content: plugins write and close within this time. */
export const SETTLE_MS = 5;
/** More files, while the disk hangs, are left to the sync. */
const MAX_PENDING = 1024;
/**
 * A disk that takes longer for a batch is slow, and writeback would keep it busy: plugins that remove a file wait until
 * its writeback is done. So the queue pauses three times as long as the batch took. Files that are removed meanwhile
 * are never written.
 */
const SLOW_MS = 25;
const PAUSE_PER_WRITEBACK = 3;
const LONGEST_PAUSE_MS = 1000;

export function writebackQueue(
  /** Called when a directory was noticed. */
  onDirectory: () => void,
  start: typeof startWriteback = startWriteback,
  wait: typeof pause = pause,
): WritebackQueue {
  let pending = new Map<string, Set<string>>();
  let size = 0;
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    let pauseMs = SETTLE_MS;
    while (size > 0) {
      await wait(pauseMs);
      const startedAt = performance.now();
      const batch = pending;
      pending = new Map();
      size = 0;
      const started = await Promise.all([...batch].map(([dir, names]) => start(dir, names)));
      if (started.some(({ hasDirectories }) => hasDirectories)) onDirectory();
      const tookMs = performance.now() - startedAt;
      pauseMs = tookMs < SLOW_MS ? SETTLE_MS : Math.min(tookMs * PAUSE_PER_WRITEBACK, LONGEST_PAUSE_MS);
    }
    isRunning = false;
  }

  return {
    notice: (dir, name) => {
      const names = pending.get(dir) ?? new Set();
      if (size === MAX_PENDING || names.has(name)) return;
      pending.set(dir, names.add(name));
      size += 1;
      if (!isRunning) void run();
    },
    close: () => {
      pending = new Map();
      size = 0;
    },
  };
}

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
