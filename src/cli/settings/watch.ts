import { type BigIntStats, statSync } from "node:fs";
import { dirname } from "node:path";
import { watchDirectories } from "../../durable/directory-watch.ts";
import { errorCode } from "../../host/source.ts";

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
  const directory = watchDirectories(() => {
    clearTimeout(pending);
    pending = setTimeout(check, timing.quietMs).unref();
  });

  function check(): void {
    directory.refresh([dirname(path)]);
    const now = identityOf(path);
    if (now === last) return;
    last = now;
    onChange();
  }

  directory.refresh([dirname(path)]);
  const periodic = setInterval(check, timing.everyMs).unref();
  return () => {
    clearInterval(periodic);
    clearTimeout(pending);
    directory.close();
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
