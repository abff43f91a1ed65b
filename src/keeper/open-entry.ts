import { close, closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { errorLabel } from "../host/source.ts";

/**
 * Entries are opened synchronously, without the engine's thread pool: on a node short of CPU time each hop takes as
 * long as a concurrent scan. It does not wait for the disk, because recently written or listed entries are in the page
 * cache. Reading, syncing and closing can wait for the disk, and use the thread pool.
 */
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Neither follows a link, nor blocks on a FIFO, nor takes a terminal. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** No plugin writes this much about a pod, and syncing it would block the disk for all processes. */
const MAX_BYTES = 16 * 1024 * 1024;

export type OpenedEntry =
  /** The caller closes it. */
  | { readonly kind: "file"; readonly fd: number }
  | { readonly kind: "directory" }
  /** Not a plugin's file, or gone. */
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly code: string };

/** Asynchronous, because closing may free the blocks of a removed file and wait for the disk. */
export function closeSoon(fd: number): void {
  close(fd, () => undefined);
}

/** Returns undefined if it was removed, replaced, or cannot be opened. */
export function openDirectory(path: string): number | undefined {
  try {
    return openSync(path, DIRECTORY);
  } catch {
    return undefined;
  }
}

/** Opened through the directory's descriptor, so that no part of the path can be swapped meanwhile. Read-only. */
export function openEntry(dirFd: number, name: string, moreFlags = 0): OpenedEntry {
  const path = `/proc/self/fd/${dirFd}/${name}`;
  let fd: number;
  try {
    // Checked before open, because opening a device can have side effects.
    const stats = lstatSync(path);
    if (stats.isDirectory()) return { kind: "directory" };
    if (!stats.isFile()) return { kind: "passed" };
    fd = openSync(path, FILE | moreFlags);
  } catch (error) {
    const code = errorLabel(error);
    // Removed, or replaced by a link or a socket: the replacement has its own notification.
    return ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(code) ? { kind: "passed" } : { kind: "failed", code };
  }
  const stats = fstatSync(fd);
  if (stats.isFile() && stats.size <= MAX_BYTES) return { kind: "file", fd };
  closeSync(fd);
  return { kind: "passed" };
}
