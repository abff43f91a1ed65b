import { constants } from "node:fs";
import { type OpenFile, openFile } from "../../host/guarded-fs.ts";
import { absent, errorLabel, failed, read, type Source } from "../../host/source.ts";
import { transactionsIn } from "./layout.ts";

/** The database of a busy node takes some tens of megabytes. */
export const MAX_BOLT_BYTES = 1024 * 1024 * 1024;

const TRIES = 5;

/**
 * Lets `use` read a bolt file as one transaction left it. bbolt never writes into pages that the last transaction uses,
 * and ends each with a meta page: if these are of the same transactions before and after, `use` saw no concurrent
 * write. Nothing is locked and nothing is written; containerd's own lock would block forever. `path` is for messages.
 */
export function readStable<T>(opened: string, path: string, use: (source: ByteSource) => T): Source<T> {
  let file: OpenFile;
  try {
    file = openFile(opened, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    return openError(path, error);
  }
  try {
    return readOpen(file, path, use);
  } finally {
    file.close();
  }
}

function readOpen<T>(file: OpenFile, path: string, use: (source: ByteSource) => T): Source<T> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const stats = file.stat();
    if (!stats.isFile()) return failed(`${path} is not a regular file`);
    if (stats.size > MAX_BOLT_BYTES) {
      return failed(
        `${path} has ${stats.size} bytes; more than ${MAX_BOLT_BYTES} are not read`,
        "bbolt compact makes a smaller copy of it while the runtime is stopped",
      );
    }
    const source: ByteSource = { size: stats.size, read: (offset, length) => readExactly(file, offset, length) };
    const before = transactionsIn(source);
    const value = use(source);
    if (transactionsIn(source) === before) return read(value);
  }
  return failed(
    `${path} was written to during each of ${TRIES} readings: its runtime is at work`,
    "ask the runtime itself: unghost scan without --offline",
  );
}

function readExactly(file: OpenFile, offset: number, length: number): Uint8Array | ReadFailure {
  const bytes = Buffer.allocUnsafeSlow(length);
  try {
    for (let done = 0; done < length; ) {
      const count = file.read(bytes, done, length - done, offset + done);
      if (count === 0) return { failure: "lies beyond the end of the file" };
      done += count;
    }
  } catch (error) {
    return { failure: `cannot be read from the disk (${errorLabel(error)})` };
  }
  return bytes;
}

function openError(path: string, error: unknown): Source<never> {
  const code = errorLabel(error);
  if (code === "ENOENT" || code === "ENOTDIR") return absent(`there is no ${path}`);
  if (code === "EACCES" || code === "EPERM") return failed(`${path} may not be read (${code})`, "run unghost as root");
  return failed(`${path} could not be opened (${code})`);
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
