import { type BigIntStats, type FSWatcher, statSync, watch } from "node:fs";
import { dirname } from "node:path";
import { errorCode } from "../../host/system-error.ts";

export interface WatchTiming {
  /** A file is written in several steps: quiet for this long, it is whole. */
  readonly quietMs: number;
  /** How often it is checked without any event. */
  readonly everyMs: number;
}

const TIMING: WatchTiming = { quietMs: 250, everyMs: 5000 };

/**
 * Calls when the file has changed, has come or has gone. Its directory is watched, because editors replace the file and
 * a ConfigMap swaps the link that leads to it; and as events get lost (and links may lead anywhere), it is checked
 * now and then. Gives back how to stop.
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

/** Distinguishes states of the file; follows links, as reading it does. */
function identityOf(path: string): string {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs }: BigIntStats = statSync(path, { bigint: true });
    return [dev, ino, size, mtimeNs, ctimeNs].join(" ");
  } catch (error) {
    return errorCode(error) ?? String(error);
  }
}
