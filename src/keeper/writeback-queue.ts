import { startWriteback } from "./start-writeback.ts";

/** Content of noticed files is written soon, however long the sync under way takes. */
export interface WritebackQueue {
  /** `written` starts at once: on a node short of processor time every turn of the event loop may take a second. */
  notice(dir: string, name: string, change: "written" | "listed"): void;
  close(): void;
}

/** A new file is noticed before its content is there: plugins write and close within this time. */
export const SETTLE_MS = 5;
/** What comes while the disk hangs is left to the sync. */
const MOST_UNFINISHED = 1024;

export function writebackQueue(
  /** A directory was noticed. */
  onDirectory: () => void,
  start: typeof startWriteback = startWriteback,
): WritebackQueue {
  let pending = new Map<string, Set<string>>();
  let unfinished = 0;
  let settling: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(settling);
    settling = undefined;
    const batch = pending;
    pending = new Map();
    for (const [dir, names] of batch) void finish(dir, names);
  }

  async function finish(dir: string, names: ReadonlySet<string>): Promise<void> {
    const { hasDirectories } = await start(dir, names);
    unfinished -= names.size;
    if (hasDirectories) onDirectory();
  }

  return {
    notice: (dir, name, change) => {
      const names = pending.get(dir) ?? new Set();
      if (!names.has(name)) {
        if (unfinished === MOST_UNFINISHED) return;
        pending.set(dir, names.add(name));
        unfinished += 1;
      }
      if (change === "written") flush();
      else settling ??= setTimeout(flush, SETTLE_MS).unref();
    },
    close: () => {
      clearTimeout(settling);
      pending = new Map();
    },
  };
}
