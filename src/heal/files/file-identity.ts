import { type BigIntStats, constants, lstatSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { errorCode } from "../../host/system-error.ts";
import type { FileState } from "../journal/entry.ts";
import { chunksOf } from "../journal/reader.ts";
import { sha256 } from "./sha256.ts";

/** One file in one state: another file under the same name, or the same file rewritten, differs. */
export type FileIdentity = Pick<FileState, "dev" | "inode" | "size" | "mtimeNs">;

export function identityOf(stats: BigIntStats): FileIdentity {
  return { dev: stats.dev, inode: stats.ino, size: stats.size, mtimeNs: stats.mtimeNs };
}

export function sameIdentity(one: FileIdentity, other: FileIdentity): boolean {
  return one.dev === other.dev && sameAcrossBoots(one, other);
}

/** Device numbers are handed out again at each boot, so an entry of an earlier boot is compared without them. */
export function sameAcrossBoots(one: FileIdentity, other: FileIdentity): boolean {
  return one.inode === other.inode && one.size === other.size && one.mtimeNs === other.mtimeNs;
}

/** What lies at a path, without following it and without opening anything that is not a regular file. */
export type Found =
  | { readonly what: "nothing" }
  | { readonly what: "file"; readonly identity: FileIdentity; readonly stats: BigIntStats }
  | { readonly what: "odd"; readonly kind: OddKind };

export function lookAt(path: string): Found {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { what: "nothing" };
  if (!stats.isFile()) return { what: "odd", kind: kindOf(stats) };
  return { what: "file", identity: identityOf(stats), stats };
}

export type OddKind = "symlink" | "directory" | "fifo" | "socket" | "device";

function kindOf(stats: BigIntStats): OddKind {
  if (stats.isSymbolicLink()) return "symlink";
  if (stats.isDirectory()) return "directory";
  if (stats.isFIFO()) return "fifo";
  if (stats.isSocket()) return "socket";
  return "device";
}

const IN_WORDS: Readonly<Record<OddKind, string>> = {
  symlink: "a symbolic link",
  directory: "a directory",
  fifo: "a FIFO",
  socket: "a socket",
  device: "a device",
};

export function kindInWords(kind: OddKind): string {
  return IN_WORDS[kind];
}

/** Opens for reading what lookAt said is a regular file; should it have become something else, nothing blocks. */
export async function openForReading(path: string): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await open(path, flags | constants.O_NOATIME);
  } catch (thrown) {
    // O_NOATIME is for the owner alone.
    if (errorCode(thrown) === "EPERM") return open(path, flags);
    throw thrown;
  }
}

/** sha256 of a file's content, or undefined when there is more than `maxBytes` of it. */
export async function hashOf(handle: FileHandle, maxBytes: bigint): Promise<string | undefined> {
  const hash = sha256();
  let seen = 0n;
  for await (const chunk of chunksOf(handle)) {
    seen += BigInt(chunk.length);
    if (seen > maxBytes) return undefined;
    hash.update(chunk);
  }
  return hash.digest("hex");
}

/** Whether a regular file with exactly this content lies at the path. */
export async function hasContent(path: string, expected: Pick<FileState, "sha256" | "size">): Promise<boolean> {
  const found = lookAt(path);
  if (found.what !== "file" || found.identity.size !== expected.size) return false;
  const handle = await openForReading(path);
  try {
    return (await hashOf(handle, expected.size)) === expected.sha256;
  } finally {
    await handle.close();
  }
}
