import { close, constants, fstat, lstat, open } from "node:fs";
import { promisify } from "node:util";
import { errorLabel } from "../host/system-error.ts";

/** Every call that can wait for a disk runs in the engine's thread pool: only the keeper itself waits. */
const openFile = promisify(open);
const statFd = promisify(fstat);
const statEntry = promisify(lstat);
export const closeFd = promisify(close);

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

/** undefined: removed, replaced by something else, or not to be opened. */
export async function openDirectory(path: string): Promise<number | undefined> {
  try {
    return await openFile(path, DIRECTORY);
  } catch {
    return undefined;
  }
}

/** Reached through the open directory, so that no part of the path can be swapped meanwhile. Opened for reading only. */
export async function openEntry(dirFd: number, name: string, moreFlags = 0): Promise<OpenedEntry> {
  const path = `/proc/self/fd/${dirFd}/${name}`;
  let fd: number;
  try {
    // Before it is opened: opening a device can set it going.
    const stats = await statEntry(path);
    if (stats.isDirectory()) return { kind: "directory" };
    if (!stats.isFile()) return { kind: "passed" };
    fd = await openFile(path, FILE | moreFlags);
  } catch (error) {
    const code = errorLabel(error);
    // Removed, or replaced by a link or a socket: whatever came in its place has a notification of its own.
    return ["ENOENT", "ENOTDIR", "ELOOP", "ENXIO"].includes(code) ? { kind: "passed" } : { kind: "failed", code };
  }
  const stats = await statFd(fd);
  if (stats.isFile() && stats.size <= MOST_BYTES) return { kind: "file", fd };
  await closeFd(fd);
  return { kind: "passed" };
}
