import { close, closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { errorLabel } from "../host/system-error.ts";

/**
 * Entries are opened without a detour through the engine's threads: on a node short of processor time each detour takes
 * as long as the scan that runs meanwhile. It does not wait for the disk: what was just written or listed is in the
 * kernel's memory. Reading, syncing and closing can wait for it, and use those threads.
 */
const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Neither follows a link, nor waits for the other end of a FIFO, nor takes a terminal. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;

/** No plugin writes so much about a pod; whatever it is, its sync would hold the disk up for everybody. */
const MOST_BYTES = 16 * 1024 * 1024;

export type OpenedEntry =
  /** To be closed by the caller. */
  | { readonly kind: "file"; readonly fd: number }
  | { readonly kind: "directory" }
  /** Nothing that a plugin wrote, or gone. */
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly code: string };

/** Closing may free the blocks of a file that was removed meanwhile, and wait for the disk: the caller does not wait. */
export function closeSoon(fd: number): void {
  close(fd, () => undefined);
}

/** undefined: removed, replaced by something else, or not to be opened. */
export function openDirectory(path: string): number | undefined {
  try {
    return openSync(path, DIRECTORY);
  } catch {
    return undefined;
  }
}

/** Reached through the open directory, so that no part of the path can be swapped meanwhile. Opened for reading only. */
export function openEntry(dirFd: number, name: string, moreFlags = 0): OpenedEntry {
  const path = `/proc/self/fd/${dirFd}/${name}`;
  let fd: number;
  try {
    // Before it is opened: opening a device can set it going.
    const stats = lstatSync(path);
    if (stats.isDirectory()) return { kind: "directory" };
    if (!stats.isFile()) return { kind: "passed" };
    fd = openSync(path, FILE | moreFlags);
  } catch (error) {
    const code = errorLabel(error);
    // Removed, or replaced by a link or a socket: whatever came in its place has a notification of its own.
    return ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(code) ? { kind: "passed" } : { kind: "failed", code };
  }
  const stats = fstatSync(fd);
  if (stats.isFile() && stats.size <= MOST_BYTES) return { kind: "file", fd };
  closeSync(fd);
  return { kind: "passed" };
}
