import { closeSync, lstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { errorLabel } from "./system-error.ts";

/** Reads below /proc, where sizes are unknown beforehand and processes end while they are read. */

export type ProcRead =
  | { readonly kind: "content"; readonly text: string }
  | { readonly kind: "gone" }
  | { readonly kind: "denied" }
  | { readonly kind: "unreadable"; readonly code: string };

const shared = Buffer.allocUnsafe(128 * 1024);

/** Returns up to maxBytes of the file; the rest is dropped. */
export function readProcFile(path: string, maxBytes: number = shared.length): ProcRead {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    return procError(error);
  }
  try {
    let buffer: Buffer = shared;
    let length = 0;
    while (length < maxBytes) {
      if (length === buffer.length) buffer = grown(buffer, maxBytes);
      const count = readSync(fd, buffer, length, Math.min(buffer.length, maxBytes) - length, null);
      if (count === 0) break;
      length += count;
    }
    return { kind: "content", text: buffer.toString("utf8", 0, length) };
  } catch (error) {
    return procError(error);
  } finally {
    closeSync(fd);
  }
}

/** Only for the few files that need it: a buffer of the maximum size would cause a garbage collection in every scan. */
function grown(full: Buffer, most: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.min(2 * full.length, most));
  full.copy(larger);
  return larger;
}

/**
 * The same off the main thread, with a timeout. Memory of a process in uninterruptible sleep (arguments, environment)
 * may be locked by that process; a plain read would then wait as long as it sleeps, like `ps`.
 */
export async function readProcFileWithin(milliseconds: number, path: string, maxBytes: number): Promise<ProcRead> {
  const giveUp = new AbortController();
  const late = setTimeout(milliseconds, { kind: "unreadable", code: "ETIMEDOUT" } satisfies ProcRead, {
    signal: giveUp.signal,
  }).catch((): ProcRead => ({ kind: "unreadable", code: "ABORTED" }));
  const answer = await Promise.race([readInBackground(path, maxBytes), late]);
  giveUp.abort();
  return answer;
}

async function readInBackground(path: string, maxBytes: number): Promise<ProcRead> {
  try {
    // Loaded on demand: most nodes have no such process, and loading takes milliseconds.
    const { open } = await import("node:fs/promises");
    await using file = await open(path, "r");
    const buffer = Buffer.alloc(maxBytes);
    const { bytesRead } = await file.read(buffer, 0, maxBytes, null);
    return { kind: "content", text: buffer.toString("utf8", 0, bytesRead) };
  } catch (error) {
    return procError(error);
  }
}

/** `readLink` is for tests. */
export function readProcLink(path: string, readLink: (path: string) => string = readlinkSync): ProcRead {
  try {
    return { kind: "content", text: readLink(path) };
  } catch (error) {
    const failed = procError(error);
    // The kernel also answers EACCES if the process ends while its link is being read.
    return failed.kind === "denied" && isGone(path) ? { kind: "gone" } : failed;
  }
}

function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch (error) {
    return procError(error).kind === "gone";
  }
}

/** The link's target; undefined if it cannot be read for any reason. */
export function procLink(path: string): string | undefined {
  const read = readProcLink(path);
  return read.kind === "content" ? read.text : undefined;
}

/** The file's text; empty if it cannot be read for any reason. */
export function procText(path: string): string {
  const read = readProcFile(path);
  return read.kind === "content" ? read.text : "";
}

function procError(error: unknown): ProcRead {
  const code = errorLabel(error);
  if (code === "ENOENT" || code === "ESRCH") return { kind: "gone" };
  return code === "EACCES" || code === "EPERM" ? { kind: "denied" } : { kind: "unreadable", code };
}
