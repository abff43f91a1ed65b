import { closeSync, constants, type FSWatcher, openSync, readlinkSync, watch } from "node:fs";
import { basename } from "node:path";
import { statsOf } from "../host/safe-fs.ts";

/** A directory in which something changed. Without a name, anything may have changed: the kernel's queue overflowed. */
type OnChange = (dir: string, name: string | undefined) => void;

interface Shared {
  readonly identity: string;
  readonly watcher: FSWatcher;
  readonly listeners: Set<OnChange>;
}

/**
 * One watch per directory for the whole process. Bun identifies watches by their path: while any caller holds the watch
 * of a removed directory, a new watch of the same path gets that dead one.
 */
const shared = new Map<string, Shared>();

export type DirectoryWatch = ReturnType<typeof watchDirectories>;

/** inotify on directories that may not exist yet, and may be removed and created again. */
export function watchDirectories(onChange: OnChange) {
  const watched = new Map<string, string>();

  function forget(path: string): void {
    watched.delete(path);
    const known = shared.get(path);
    known?.listeners.delete(onChange);
    if (known?.listeners.size === 0) end(path, known);
  }

  return {
    /** Watches exactly these from now on. Cheap enough to be called often: only changes have a cost. */
    refresh: (paths: readonly string[]) => {
      const wanted = new Set(paths);
      for (const path of watched.keys()) {
        if (!wanted.has(path)) forget(path);
      }
      /** New watches: earlier changes in these directories were not seen. */
      const fresh: string[] = [];
      /** Existing directories without a watch: the inotify limit is reached, or they are in another mount namespace. */
      const unwatched: string[] = [];
      for (const path of wanted) {
        const identity = identityOf(path);
        if (identity === undefined) {
          forget(path);
          continue;
        }
        const now = sharedWatch(path, identity);
        if (now === undefined) {
          watched.delete(path);
          unwatched.push(path);
          continue;
        }
        now.listeners.add(onChange);
        if (watched.get(path) !== identity) fresh.push(path);
        watched.set(path, identity);
      }
      return { fresh, unwatched };
    },
    close: () => {
      for (const path of watched.keys()) forget(path);
    },
  };
}

function sharedWatch(path: string, identity: string): Shared | undefined {
  const known = shared.get(path);
  if (known?.identity === identity) return known;
  if (known !== undefined) end(path, known);
  // Listeners of the previous watch are kept until they refresh.
  const listeners = known?.listeners ?? new Set<OnChange>();
  const report = (name: string | undefined): void => {
    for (const listener of listeners) listener(path, name);
  };
  try {
    if (identityOf(pathForWatch(path)) !== identity) return undefined;
    const watcher = watch(path, { persistent: false }, (_event, name) => {
      // The removal of the directory is reported under its own name; an entry of that name only costs one more refresh.
      if (name === basename(path)) lose();
      else report(name ?? undefined);
    });
    const opened = { identity, watcher, listeners };
    // The next refresh watches the new directory, even if it has the same inode number.
    const lose = (): void => {
      if (shared.get(path) === opened) end(path, opened);
      report(undefined);
    };
    watcher.on("error", lose);
    shared.set(path, opened);
    return opened;
  } catch {
    return undefined;
  }
}

/**
 * Bun watches the path that the kernel reports for the open directory. For one below /proc/1/root that is a path of
 * another mount namespace: here it does not exist, or is something else.
 */
function pathForWatch(path: string): string {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } finally {
    closeSync(fd);
  }
}

function end(path: string, { watcher }: Shared): void {
  watcher.close();
  shared.delete(path);
}

/**
 * Returns undefined if the directory does not exist, is a link, or is unreadable. Most file systems reuse inode numbers
 * at once; the birth time distinguishes two directories.
 */
function identityOf(path: string): string | undefined {
  const stats = statsOf(path);
  return stats?.isDirectory() === true ? `${stats.dev}:${stats.ino}:${stats.birthtimeMs}` : undefined;
}
