import { type BigIntStats, type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../../host/system-error.ts";

export interface WatchTiming {
  /** A file is written in several steps: without a change for this long, it is complete. */
  readonly quietMs: number;
  /** The interval of checks without any event. */
  readonly everyMs: number;
}

const TIMING: WatchTiming = { quietMs: 250, everyMs: 5000 };

/**
 * Calls back when the file has changed, was created or was removed. Its directory is watched, because editors replace
 * the file and a ConfigMap changes the link to it; events may get lost (and links may lead anywhere), so the file is
 * also checked periodically. Returns a function to stop.
 */
export function watchConfigFile(path: string, onChange: () => void, timing: WatchTiming = TIMING): () => void {
  let last = identityOf(path);
  let pending: NodeJS.Timeout | undefined;
  let watcher = watchDirectory();

  function check(): void {
    pending = undefined;
    watcher ??= watchDirectory();
    const now = identityOf(path);
    if (now === last) return;
    last = now;
    onChange();
  }

  function checkSoon(): void {
    clearTimeout(pending);
    pending = setTimeout(check, timing.quietMs).unref();
  }

  function watchDirectory(): FSWatcher | undefined {
    try {
      const fresh = watch(dirname(path), { persistent: false }, checkSoon);
      fresh.on("error", () => {
        fresh.close();
        watcher = undefined;
      });
      return fresh;
    } catch {
      // No such directory yet, or no watches left on this node: the periodic check is the fallback.
      return undefined;
    }
  }

  const periodic = setInterval(check, timing.everyMs).unref();
  return () => {
    clearInterval(periodic);
    clearTimeout(pending);
    watcher?.close();
  };
}

/** Identifies a state of the file; follows links, like reading it does. */
function identityOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs }: BigIntStats = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return errorCode(error) ?? String(error);
  }
}
