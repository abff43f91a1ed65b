import { pause } from "./signal.ts";
import { startWriteback } from "./start-writeback.ts";

/** Content of noticed files is written soon, however long the sync under way takes. */
export interface WritebackQueue {
  notice(dir: string, name: string): void;
  close(): void;
}

/** A new file is noticed before its content is there: plugins write and close within this time. */
export const SETTLE_MS = 5;
/** What comes while the disk hangs is left to the sync. */
const MOST_PENDING = 1024;

export function writebackQueue(
  /** A directory was noticed. */
  onDirectory: () => void,
  start: typeof startWriteback = startWriteback,
): WritebackQueue {
  let pending = new Map<string, Set<string>>();
  let size = 0;
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (size > 0) {
      await pause(SETTLE_MS);
      const batch = pending;
      pending = new Map();
      size = 0;
      const started = await Promise.all([...batch].map(([dir, names]) => start(dir, names)));
      if (started.some(({ hasDirectories }) => hasDirectories)) onDirectory();
    }
    isRunning = false;
  }

  return {
    notice: (dir, name) => {
      const names = pending.get(dir) ?? new Set();
      if (size === MOST_PENDING || names.has(name)) return;
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
