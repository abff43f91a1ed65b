import { type FSWatcher, statSync, watch } from "node:fs";
import type { OnHint } from "./trigger.ts";

/** File notifications on directories that may not be there yet, and may be made anew. */
export interface DirectoryWatch {
  /** Watches what is there now. Cheap: called after every look. */
  refresh(paths: readonly string[]): void;
  close(): void;
}

interface Watched {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

export function watchDirectories(onHint: OnHint): DirectoryWatch {
  const watched = new Map<string, Watched>();

  function forget(path: string): void {
    watched.get(path)?.watcher.close();
    watched.delete(path);
  }

  function begin(path: string, identity: string): void {
    const watcher = startWatching(path, () => onHint({ from: `files in ${path}`, urgency: "soon" }));
    if (watcher === undefined) return;
    // A directory that goes away ends its watch with an error or without one; the next refresh sees it.
    watcher.on("error", () => forget(path));
    watched.set(path, { identity, watcher });
  }

  return {
    refresh: (paths) => {
      for (const path of watched.keys()) {
        if (!paths.includes(path)) forget(path);
      }
      for (const path of paths) {
        const identity = identityOf(path);
        if (watched.get(path)?.identity === identity) continue;
        forget(path);
        if (identity !== undefined) begin(path, identity);
      }
    },
    close: () => {
      for (const path of watched.keys()) forget(path);
    },
  };
}

/** undefined where nothing can be watched: no more watches to be had, a file system without them. The slow scan serves. */
function startWatching(path: string, onEvent: () => void): FSWatcher | undefined {
  try {
    return watch(path, { persistent: false }, onEvent);
  } catch {
    return undefined;
  }
}

function identityOf(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats?.isDirectory() === true ? `${stats.dev}:${stats.ino}` : undefined;
  } catch {
    // Not to be looked at; a look says why.
    return undefined;
  }
}
