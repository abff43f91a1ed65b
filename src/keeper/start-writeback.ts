import { constants, read } from "node:fs";
import { promisify } from "node:util";
import { closeSoon, type OpenedEntry, openDirectory, openEntry } from "./open-entry.ts";
import { takingTurns } from "./turns.ts";

const readFd = promisify(read);

/** A separate limit: a slow fsync must not delay writeback. */
const inTurn = takingTurns(4);

export interface StartedWriteback {
  /** Some of the names are directories, which may contain files to sync. */
  readonly hasDirectories: boolean;
}

/** The data is discarded. No plugin writes more than this about a pod. */
const block = Buffer.alloc(64 * 1024);

/**
 * Makes the file system write the content of these files back, without a sync. Otherwise it keeps new content in memory
 * for up to 30 seconds, and a journal commit meanwhile, for any fsync of another process, makes the name of an empty
 * file durable. Once the content has its blocks, a commit includes both or neither.
 *
 * A direct read causes that: the file system writes dirty pages before it reads the disk. It waits only for this file's
 * content, neither for a commit nor for a flush of the disk's cache, so no other process waits for it.
 */
export async function startWriteback(dir: string, names: Iterable<string>): Promise<StartedWriteback> {
  const dirFd = openDirectory(dir);
  if (dirFd === undefined) return { hasDirectories: false };
  try {
    const kinds = await Promise.all([...names].map((name) => inTurn(() => readDirectly(dirFd, name))));
    return { hasDirectories: kinds.includes("directory") };
  } finally {
    closeSoon(dirFd);
  }
}

async function readDirectly(dirFd: number, name: string): Promise<OpenedEntry["kind"]> {
  const entry = openEntry(dirFd, name, constants.O_DIRECT);
  if (entry.kind !== "file") return entry.kind;
  try {
    await readFd(entry.fd, block, 0, block.length, 0);
  } catch {
    // A file system without direct reads: the following sync writes it.
  } finally {
    closeSoon(entry.fd);
  }
  return entry.kind;
}
