import type { Hash } from "node:crypto";
import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, read, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, normalize, posix } from "node:path";
import { promisify } from "node:util";
import type { FileState } from "../../evidence/journal-action.ts";
import { unreliableMountOn } from "../../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../../host/paths.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { chunksOf } from "../journal/reader.ts";
import { syncDescriptor } from "../state/durable-files.ts";
import { type Outcome, ok, refuse } from "../state/outcome.ts";

/**
 * An open directory, so that all operations on its entries affect this directory even if a part of its path is swapped
 * meanwhile.
 */
export interface HeldDirectory {
  /** A path to the entry that does not use the directory's own path. */
  entry(name: string): string;
  sync(): Promise<void>;
  close(): void;
}

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Walks from the host's root to a directory, one component at a time, following no symbolic link. Returns undefined if
 * it does not exist. Node has no openat; /proc/self/fd/<n>/<name> does the same.
 */
export function holdDirectory(hostRoot: string, path: string): Outcome<HeldDirectory | undefined> {
  if (!isAbsolute(path) || normalize(path) !== path) {
    return refuse(
      `${path} is not a plain absolute path.`,
      "Give the directory without . or .. and without double slashes.",
    );
  }
  const mount = unreliableMountOn(hostPath(hostRoot, path));
  if (mount !== undefined) return refuse(onUnreliableMount(path, mount), UNRELIABLE_NEXT);
  let fd = openSync(hostRoot, constants.O_RDONLY | constants.O_DIRECTORY);
  let walked = hostRoot;
  for (const component of path.split("/").filter((part) => part !== "")) {
    walked = join(walked, component);
    const step = openStep(fd, component, walked);
    closeSync(fd);
    if (!step.ok) return step;
    if (step.value === undefined) return ok(undefined);
    fd = step.value;
  }
  return ok({
    entry: (name) => `/proc/self/fd/${fd}/${name}`,
    sync: () => syncDescriptor(fd),
    close: () => closeSync(fd),
  });
}

/** A change that hangs halfway can neither be ended nor be recorded. */
export function onUnreliableMount(path: string, mount: string): string {
  return `${path} is on the file system mounted at ${mount}, which may stop answering at any call, and unghost changes nothing there.`;
}

const UNRELIABLE_NEXT = "Change it by hand, or move the directory to a local disk.";

function openStep(from: number, component: string, walked: string): Outcome<number | undefined> {
  try {
    return ok(openSync(`/proc/self/fd/${from}/${component}`, DIRECTORY));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT") return ok(undefined);
    if (code === "ENOTDIR" || code === "ELOOP") {
      return refuse(
        `${walked} is a symbolic link or not a directory, and unghost changes nothing through such a path.`,
        "Give the real directory (see realpath) with the flag that names it.",
      );
    }
    return refuse(`${walked} cannot be opened: ${describeError(thrown)}.`, "Check that directory's permissions.");
  }
}

/** One file in one state: another file of the same name, or the same file rewritten, differs. */
export type FileIdentity = Pick<FileState, "dev" | "inode" | "size" | "mtimeNs">;

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
  const { dev, ino: inode, size, mtimeNs } = stats;
  return { what: "file", identity: { dev, inode, size, mtimeNs }, stats };
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

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

/**
 * Copies a file to another file system with mode, times and, if permitted, owner, syncs it and reads it back. Returns
 * false if the copy does not have the content in `state`, because the source was changed meanwhile.
 */
export async function copyFileSafely(from: string, to: string, state: FileState): Promise<boolean> {
  const source = await openForReading(from);
  try {
    const target = await open(to, NEW_FILE, 0o600);
    try {
      let copied = 0n;
      for await (const chunk of chunksOf(source)) {
        copied += BigInt(chunk.length);
        if (copied > state.size) return false;
        await target.writeFile(chunk);
      }
      await target.chmod(state.mode);
      await target.utimes(seconds(state.atimeNs), seconds(state.mtimeNs));
      await chownIfPermitted(target, state);
      await target.sync();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
  return hasContent(to, state);
}

/** Without CAP_CHOWN the copy belongs to root, and the journal has the original owner. */
async function chownIfPermitted(target: FileHandle, { uid, gid }: Pick<FileState, "uid" | "gid">): Promise<void> {
  try {
    await target.chown(uid, gid);
  } catch (thrown) {
    if (errorCode(thrown) !== "EPERM") throw thrown;
  }
}

/** utimes accepts seconds as a double, which is precise to microseconds; no reader of these files needs more. */
function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1000n) / 1e6;
}

const readInBackground = promisify(read);

/** Copies the last `maxBytes` of a file, from the start of a line if possible. Returns the number of bytes. */
export async function copyTail(from: string, to: string, maxBytes: number): Promise<number> {
  const source = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(source);
    const start = size <= maxBytes ? 0 : await nextLineStart(source, size - maxBytes, size);
    const target = openSync(to, NEW_FILE, 0o600);
    try {
      const buffer = Buffer.allocUnsafe(Math.min(64 * 1024, size - start));
      let position = start;
      while (position < size) {
        const wanted = Math.min(buffer.length, size - position);
        const { bytesRead } = await readInBackground(source, buffer, 0, wanted, position);
        if (bytesRead === 0) break;
        writeFileSync(target, buffer.subarray(0, bytesRead));
        position += bytesRead;
      }
      await syncDescriptor(target);
      return position - start;
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}

/** A log line of the runtime has at most 16 KiB; a file without a newline there is cut anywhere. */
async function nextLineStart(source: number, from: number, size: number): Promise<number> {
  const buffer = Buffer.alloc(Math.min(32 * 1024, size - from));
  const { bytesRead } = await readInBackground(source, buffer, 0, buffer.length, from);
  const newline = buffer.subarray(0, bytesRead).indexOf(0x0a);
  return newline === -1 ? from : from + newline + 1;
}
