import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { couldConcernSandboxes } from "../../classes/index.ts";
import type { OnHint } from "./triggers.ts";

/** Follows logs that are their own files. */
export interface LogWatch {
  /** Sets the files to follow. */
  refresh(paths: readonly string[]): void;
  close(): void;
}

interface Position {
  readonly identity: string;
  readonly size: number;
}

/** A log is checked once a second, however fast it grows. */
const EVERY_MS = 1000;
/** Only the newest part of a flood is read, because it repeats itself. */
const MAX_BYTES = 64 * 1024;

export function watchLogFiles(onHint: OnHint): LogWatch {
  const positions = new Map<string, Position | undefined>();

  function check(path: string): void {
    const before = positions.get(path);
    const { now, text } = readNew(path, before);
    positions.set(path, now);
    // The first scan has read what was written earlier.
    if (before !== undefined && text.split("\n").some(couldConcernSandboxes)) {
      onHint({ from: `lines in ${path}`, urgency: "soon" });
    }
  }

  const timer = setInterval(() => {
    for (const path of positions.keys()) check(path);
  }, EVERY_MS);
  timer.unref();
  return {
    refresh: (paths) => {
      for (const path of positions.keys()) {
        if (!paths.includes(path)) positions.delete(path);
      }
      for (const path of paths) {
        if (!positions.has(path)) check(path);
      }
    },
    close: () => clearInterval(timer),
  };
}

const NOTHING = { now: undefined, text: "" } as const;

/** The content since the position; a replaced or truncated file is new from its start. */
function readNew(
  path: string,
  before: Position | undefined,
): { readonly now: Position | undefined; readonly text: string } {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // Missing, or not readable: then it gives no hints.
    return NOTHING;
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return NOTHING;
    const now = { identity: `${stats.dev}:${stats.ino}`, size: stats.size };
    if (before === undefined) return { now, text: "" };
    const isSame = before.identity === now.identity && before.size <= now.size;
    if (isSame && before.size === now.size) return { now, text: "" };
    const from = Math.max(isSame ? before.size : 0, now.size - MAX_BYTES);
    const bytes = Buffer.alloc(now.size - from);
    return { now, text: bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, from)) };
  } catch {
    return NOTHING;
  } finally {
    closeSync(fd);
  }
}
