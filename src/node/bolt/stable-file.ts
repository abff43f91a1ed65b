import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { errorLabel } from "../../host/source.ts";
import { transactionsIn } from "./layout.ts";

type StableReading<T> =
  | { readonly kind: "read"; readonly value: T }
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly reason: string; readonly next?: string };

/** The database of a busy node takes some tens of megabytes. */
export const MAX_BOLT_BYTES = 1024 * 1024 * 1024;

const TRIES = 5;

/**
 * Lets `use` read a bolt file as one transaction left it. bbolt never writes into pages that the last transaction uses,
 * and ends each with a meta page: if these are of the same transactions before and after, `use` saw no concurrent
 * write. Nothing is locked and nothing is written; containerd's own lock would block forever.
 */
export function readStable<T>(path: string, use: (source: ByteSource) => T): StableReading<T> {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return openError(error);
  }
  try {
    return readOpen(fd, use);
  } finally {
    closeSync(fd);
  }
}

function readOpen<T>(fd: number, use: (source: ByteSource) => T): StableReading<T> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return { kind: "refused", reason: "is not a regular file" };
    if (stats.size > MAX_BOLT_BYTES) {
      return {
        kind: "refused",
        reason: `has ${stats.size} bytes; more than ${MAX_BOLT_BYTES} are not read`,
        next: "bbolt compact makes a smaller copy of it while the runtime is stopped",
      };
    }
    const source = fileAsSource(fd, stats.size);
    const before = transactionsIn(source);
    const value = use(source);
    if (transactionsIn(source) === before) return { kind: "read", value };
  }
  return {
    kind: "refused",
    reason: `was written to during each of ${TRIES} readings: its runtime is at work`,
    next: "ask the runtime itself: unghost scan without --offline",
  };
}

function fileAsSource(fd: number, size: number): ByteSource {
  return { size, read: (offset, length) => readExactly(fd, offset, length) };
}

function readExactly(fd: number, offset: number, length: number): Uint8Array | ReadFailure {
  const bytes = Buffer.allocUnsafeSlow(length);
  try {
    for (let done = 0; done < length; ) {
      const count = readSync(fd, bytes, done, length - done, offset + done);
      if (count === 0) return { failure: "lies beyond the end of the file" };
      done += count;
    }
  } catch (error) {
    return { failure: `cannot be read from the disk (${errorLabel(error)})` };
  }
  return bytes;
}

function openError(error: unknown): StableReading<never> {
  const code = errorLabel(error);
  if (code === "ENOENT" || code === "ENOTDIR") return { kind: "absent" };
  if (code === "EACCES" || code === "EPERM") {
    return { kind: "refused", reason: `may not be read (${code})`, next: "run unghost as root" };
  }
  return { kind: "refused", reason: `could not be opened (${code})` };
}

/** Random access to the bytes of a file of any size. */
export interface ByteSource {
  readonly size: number;
  /** Returns exactly `length` bytes. The range must be inside `size`. */
  read(offset: number, length: number): Uint8Array | ReadFailure;
}

/** The file is shorter than its size, or the read failed. */
interface ReadFailure {
  readonly failure: string;
}
