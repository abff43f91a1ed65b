import type { Hash } from "node:crypto";
import { type BigIntStats, constants, lstatSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname, posix } from "node:path";
import type { FileState } from "../../evidence/journal-action.ts";
import { hostPath, resolveOnHost } from "../../host/paths.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { chunksOf } from "../journal/reader.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";
import { holdDirectory } from "./held-directory.ts";

/** One file in one state: another file of the same name, or the same file rewritten, differs. */
export type FileIdentity = Pick<FileState, "dev" | "inode" | "size" | "mtimeNs">;

function identityOf(stats: BigIntStats): FileIdentity {
  return { dev: stats.dev, inode: stats.ino, size: stats.size, mtimeNs: stats.mtimeNs };
}

export function sameIdentity(one: FileIdentity, other: FileIdentity): boolean {
  return one.dev === other.dev && sameAcrossBoots(one, other);
}

/** Device numbers change between boots, so an entry of an earlier boot is compared without them. */
export function sameAcrossBoots(one: FileIdentity, other: FileIdentity): boolean {
  return one.inode === other.inode && one.size === other.size && one.mtimeNs === other.mtimeNs;
}

/** What is at a path, without following a link and without opening anything that is not a regular file. */
export type Found =
  | { readonly what: "nothing" }
  | { readonly what: "file"; readonly identity: FileIdentity; readonly stats: BigIntStats }
  | { readonly what: "odd"; readonly kind: OddKind };

export function identify(path: string): Found {
  const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  if (stats === undefined) return { what: "nothing" };
  if (!stats.isFile()) return { what: "odd", kind: kindOf(stats) };
  return { what: "file", identity: identityOf(stats), stats };
}

type OddKind = "symlink" | "directory" | "fifo" | "socket" | "device";

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

/** Opens a file that identify() found to be regular; does not block if it became something else. */
export async function openForReading(path: string): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await open(path, flags | constants.O_NOATIME);
  } catch (thrown) {
    // O_NOATIME is only allowed for the owner.
    if (errorCode(thrown) === "EPERM") return open(path, flags);
    throw thrown;
  }
}

/** sha256 of a file's content, or undefined if it is longer than `maxBytes`. */
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

/** Whether a regular file with exactly this content is at the path. */
export async function hasContent(path: string, expected: Pick<FileState, "sha256" | "size">): Promise<boolean> {
  const found = identify(path);
  if (found.what !== "file" || found.identity.size !== expected.size) return false;
  const handle = await openForReading(path);
  try {
    return (await hashOf(handle, expected.size)) === expected.sha256;
  } finally {
    await handle.close();
  }
}

/** Identify first, then prove, then quarantine: a file that changes in between is no longer the identified one. */
export async function identifyFile(hostRoot: string, path: string): Promise<Outcome<FileIdentity>> {
  const canonical = canonicalPath(hostRoot, path);
  try {
    const parent = holdDirectory(hostRoot, dirname(canonical));
    if (!parent.ok) return parent;
    if (parent.value === undefined) return refuse(`${path} is no longer there.`, "Scan again.");
    try {
      const found = identify(parent.value.entry(basename(canonical)));
      if (found.what === "file") return ok(found.identity);
      if (found.what === "nothing") return refuse(`${path} is no longer there.`, "Scan again.");
      return refuse(`${path} is ${kindInWords(found.kind)}, not a regular file.`, "Inspect it manually.");
    } finally {
      parent.value.close();
    }
  } catch (thrown) {
    return refuse(`${path} could not be read: ${describeError(thrown)}.`, "Scan again.");
  }
}

/**
 * The module is loaded on demand: a static import would be loaded at every start of the one-file build, and costs 2 ms.
 */
export function sha256(): Hash {
  return process.getBuiltinModule("node:crypto").createHash("sha256");
}

export function sha256Of(content: string | Uint8Array): string {
  return sha256().update(content).digest("hex");
}

/**
 * The same path with links above its directory resolved like on the node (/var/lib/rancher -> /mnt/rancher). Links at
 * the directory itself and at the file are kept, and refused later.
 */
export function canonicalPath(hostRoot: string, path: string): string {
  const directory = posix.dirname(path);
  const above = resolveOnHost(hostRoot, posix.dirname(directory), "follow");
  const inside = posix.relative(hostPath("/", hostRoot), above);
  return posix.join("/", inside, posix.basename(directory), posix.basename(path));
}
