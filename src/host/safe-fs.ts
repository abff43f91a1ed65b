import { constants, type Stats } from "node:fs";
import { eachPaced } from "./concurrency.ts";
import { type DirectoryEntry, lstatSync, type OpenFile, opendirSync, openFile, statSync } from "./guarded-fs.ts";
import { resolveOnHost } from "./paths.ts";
import { absent, errorLabel, failed, type Oddity, read, type Source } from "./source.ts";
import { printable } from "./text.ts";

/** Reads of directories and files that may contain anything: links, FIFOs, devices, huge files, names in any bytes. */

export type EntryKind = "file" | "directory" | "symlink" | "other";

export interface DirEntry {
  readonly name: string;
  readonly kind: EntryKind;
}

export type Listing =
  | {
      readonly kind: "listed";
      readonly entries: readonly DirEntry[];
      /** Names that are not UTF-8, made printable. */
      readonly undecodable: readonly string[];
    }
  | { readonly kind: "absent" }
  | { readonly kind: "refused"; readonly reason: string; readonly next?: string };

export type FileRead =
  | { readonly kind: "content"; readonly text: string; readonly size: number; readonly modifiedAt: Date }
  /** A regular file whose content is unknown. */
  | { readonly kind: "closed"; readonly reason: string; readonly size: number; readonly modifiedAt: Date }
  | { readonly kind: "notRegular"; readonly reason: string }
  | { readonly kind: "gone" };

const MAX_ENTRIES = 100_000;
export const MAX_FILE_BYTES = 1024 * 1024;

const RUN_AS_ROOT = "run unghost as root";

/** The entries of a directory in no order, without following a link. The directory itself must not be a link either. */
export function listDirectory(path: string, maxEntries: number = MAX_ENTRIES): Listing {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return { kind: "absent" };
    if (!stats.isDirectory()) {
      return { kind: "refused", reason: `is ${describeKind(kindOf(stats))} where a directory belongs` };
    }
    return readEntries(path, maxEntries);
  } catch (error) {
    return listingError(error);
  }
}

/** None if it cannot be listed for any reason. */
export function entriesIn(path: string): readonly DirEntry[] {
  const listing = listDirectory(path);
  return listing.kind === "listed" ? listing.entries : [];
}

function readEntries(path: string, maxEntries: number): Listing {
  const entries: DirEntry[] = [];
  const undecodable: string[] = [];
  const dir = opendirSync(path, { bufferSize: 1024 });
  try {
    for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
      if (entries.length + undecodable.length === maxEntries) {
        return { kind: "refused", reason: `holds more than ${maxEntries} entries` };
      }
      // Bytes that are not UTF-8 become U+FFFD. Bun has no typed entries with names as buffers, Node has.
      if (entry.name.includes("\uFFFD")) undecodable.push(printable(entry.name));
      else entries.push({ name: entry.name, kind: kindOfEntry(path, entry) });
    }
  } finally {
    dir.closeSync();
  }
  return { kind: "listed", entries, undecodable };
}

function listingError(error: unknown): Listing {
  const code = errorLabel(error);
  if (code === "ENOENT") return { kind: "absent" };
  if (code === "EACCES" || code === "EPERM") {
    return { kind: "refused", reason: `may not be read (${code})`, next: RUN_AS_ROOT };
  }
  return { kind: "refused", reason: `could not be read (${code})` };
}

/** Converts a directory that exists and could not be listed into a failed source. */
export function failedListing<T>(shown: string, listing: Listing & { readonly kind: "refused" }): Source<T> {
  return failed(
    `${shown} ${listing.reason}`,
    listing.next ?? `check ${shown}: its type or permissions are not what its owner sets`,
  );
}

/** A directory of the node. */
export interface HostDir {
  readonly root: string;
  /** As a path of the node; facts and messages have this path too. */
  readonly dir: string;
  readonly maxEntries?: number;
  readonly signal?: AbortSignal;
}

/**
 * Reads each entry of a directory: `work` gets the path as this process opens it, returns the value of the entry, and
 * calls `passOver` with the reason for one that cannot be used.
 */
export async function readEachEntry<T>(
  { root, dir, maxEntries, signal }: HostDir,
  work: (entry: DirEntry, path: string, passOver: (reason: string) => undefined) => T | undefined,
): Promise<Source<readonly T[]>> {
  const opened = resolveOnHost(root, dir, "keep");
  const listing = listDirectory(opened, maxEntries);
  if (listing.kind === "absent") return absent(`there is no ${dir}`);
  if (listing.kind === "refused") return failedListing(dir, listing);
  const values: T[] = [];
  const oddities = undecodableNames(dir, listing.undecodable);
  const finished = await eachPaced(listing.entries, signal, (entry) => {
    const value = work(entry, `${opened}/${entry.name}`, (reason) => {
      oddities.push({ path: `${dir}/${printable(entry.name)}`, reason });
    });
    if (value !== undefined) values.push(value);
  });
  if (!finished) return failed(`${dir} was not read to its end in time (${listing.entries.length} entries)`);
  return read(values, oddities);
}

export function undecodableNames(dir: string, names: readonly string[]): Oddity[] {
  return names.map((name) => ({ path: `${dir}/${name}`, reason: "its name is not valid UTF-8" }));
}

/** Most files are smaller; one shared buffer avoids thousands of allocations. */
const shared = Buffer.allocUnsafe(64 * 1024);

/** The text of a small regular file. Never follows a link, never blocks on a FIFO, never reads more than maxBytes. */
export function readRegularFile(path: string, maxBytes: number = MAX_FILE_BYTES): FileRead {
  const file = readFileWith(path, maxBytes, (bytes) => bytes.toString("utf8"));
  if (file.kind !== "content") return file;
  const { content: text, size, modifiedAt } = file;
  return { kind: "content", text, size, modifiedAt };
}

type ReadAs<T> =
  | Exclude<FileRead, { kind: "content" }>
  | { readonly kind: "content"; readonly content: T; readonly size: number; readonly modifiedAt: Date };

/** The bytes are valid during the call of `decode` only: the buffer is shared. */
function readFileWith<T>(path: string, maxBytes: number, decode: (bytes: Buffer) => T): ReadAs<T> {
  let file: OpenFile;
  try {
    file = openFile(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return openError(path, error);
  }
  try {
    return readOpenFile(file, maxBytes, decode);
  } catch (error) {
    return openError(path, error);
  } finally {
    file.close();
  }
}

/** Like readRegularFile, with the bytes as they are; undefined if they cannot be read for any reason. */
export function fileBytes(path: string, maxBytes: number): Buffer | undefined {
  const file = readFileWith(path, maxBytes, (bytes) => Buffer.from(bytes));
  return file.kind === "content" ? file.content : undefined;
}

/** Empty if it cannot be read for any reason. */
export function fileText(path: string, maxBytes?: number): string {
  const file = readRegularFile(path, maxBytes);
  return file.kind === "content" ? file.text : "";
}

function readOpenFile<T>(file: OpenFile, maxBytes: number, decode: (bytes: Buffer) => T): ReadAs<T> {
  const stats = file.stat();
  if (!stats.isFile()) return { kind: "notRegular", reason: `is ${describeKind(kindOf(stats))}` };
  const { size, mtime: modifiedAt } = stats;
  if (size > maxBytes) return { kind: "closed", reason: `is larger than ${maxBytes} bytes`, size, modifiedAt };

  const buffer = size <= shared.length ? shared : Buffer.allocUnsafe(size);
  let length = 0;
  while (length < size) {
    const count = file.read(buffer, length, size - length, null);
    if (count === 0) break;
    length += count;
  }
  return { kind: "content", content: decode(buffer.subarray(0, length)), size: length, modifiedAt };
}

function openError(path: string, error: unknown): Exclude<FileRead, { kind: "content" }> {
  const code = errorLabel(error);
  if (code === "ENOENT") return { kind: "gone" };
  if (code === "ELOOP") return { kind: "notRegular", reason: "is a symlink" };
  if (code === "ENXIO") return { kind: "notRegular", reason: "is a socket or a device" };
  const stats = statsOf(path);
  if (stats === undefined) {
    const isHidden = code !== "ENOTDIR";
    return isHidden
      ? { kind: "closed", reason: `could not be read (${code})`, size: 0, modifiedAt: new Date(0) }
      : { kind: "gone" };
  }
  if (!stats.isFile()) return { kind: "notRegular", reason: `is ${describeKind(kindOf(stats))}` };
  return { kind: "closed", reason: `could not be read (${code})`, size: stats.size, modifiedAt: stats.mtime };
}

/** lstat that returns undefined for any error. */
export function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // No permission on the directory, or it is none, or an invalid path: nothing more can be read about the entry.
    return undefined;
  }
}

function kindOfEntry(dir: string, entry: DirectoryEntry): EntryKind {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "directory";
  if (entry.isSymbolicLink()) return "symlink";
  // Some file systems do not report the type (XFS without ftype): lstat does.
  const stats = statsOf(`${dir}/${entry.name}`);
  return stats === undefined ? "other" : kindOf(stats);
}

function kindOf(stats: Stats): EntryKind {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  return stats.isSymbolicLink() ? "symlink" : "other";
}

const KIND_WORDS = {
  file: "a file",
  directory: "a directory",
  symlink: "a symlink",
  other: "a pipe, socket or device",
} satisfies Record<EntryKind, string>;

/** Identifies the file that a path leads to; undefined where it cannot be read. */
export function inodeOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

export function describeKind(kind: EntryKind): string {
  return KIND_WORDS[kind];
}

export type Tail =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "absent" }
  | { readonly kind: "unreadable"; readonly reason: string };

/** The last bytes of a file, from the first complete line on: the cost does not depend on the file size. */
export function readTail(path: string, maxBytes: number): Tail {
  let file: OpenFile;
  try {
    file = openFile(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorLabel(error);
    return code === "ENOENT" ? { kind: "absent" } : { kind: "unreadable", reason: `cannot be opened (${code})` };
  }
  try {
    const stats = file.stat();
    if (!stats.isFile()) return { kind: "unreadable", reason: "is not a regular file" };
    const length = Math.min(stats.size, maxBytes);
    const bytes = Buffer.alloc(length);
    const got = readFully(file, bytes, stats.size - length);
    const text = bytes.toString("utf8", 0, got);
    const isCut = length < stats.size;
    return { kind: "text", text: isCut ? text.slice(text.indexOf("\n") + 1) : text };
  } catch (error) {
    return { kind: "unreadable", reason: `cannot be read (${errorLabel(error)})` };
  } finally {
    file.close();
  }
}

/** Returns how many bytes there were. */
function readFully(file: OpenFile, bytes: Uint8Array, position: number): number {
  let length = 0;
  while (length < bytes.length) {
    const count = file.read(bytes, length, bytes.length - length, position + length);
    if (count === 0) break;
    length += count;
  }
  return length;
}

/** One line without its newline. */
export interface RawLine {
  readonly number: number;
  /** Truncated if it is longer than the limit. */
  readonly bytes: Uint8Array;
  readonly isCut: boolean;
  /** False only for the last line of a file that does not end in a newline. */
  readonly terminated: boolean;
}

const NEWLINE = 0x0a;

/** Splits a stream of chunks into lines, holding at most `maxBytes` of one in memory. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<RawLine> {
  let number = 1;
  let pieces: Uint8Array[] = [];
  let length = 0;
  const take = (piece: Uint8Array): void => {
    const room = maxBytes - Math.min(length, maxBytes);
    if (room > 0 && piece.length > 0) pieces.push(piece.subarray(0, room));
    length += piece.length;
  };
  const line = (terminated: boolean): RawLine => {
    const found = { number, bytes: Buffer.concat(pieces), isCut: length > maxBytes, terminated };
    number += 1;
    pieces = [];
    length = 0;
    return found;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end));
      yield line(true);
      start = end + 1;
    }
    // A stream may reuse its buffer for the next chunk.
    take(Uint8Array.from(chunk.subarray(start)));
  }
  if (length > 0) yield line(false);
}
