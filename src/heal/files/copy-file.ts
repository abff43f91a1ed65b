import { closeSync, constants, fstatSync, openSync, read, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import type { FileState } from "../../evidence/journal-action.ts";
import { errorCode } from "../../host/source.ts";
import { chunksOf } from "../journal/reader.ts";
import { syncDescriptor } from "./durable-files.ts";
import { hasContent, openForReading } from "./file-identity.ts";

/**
 * Copies a file to another file system with mode, times and, if permitted, owner, syncs it and reads it back. Returns
 * false if the copy does not have the content in `state`, because the source was changed meanwhile.
 */
export async function copyFileSafely(from: string, to: string, state: FileState): Promise<boolean> {
  const source = await openForReading(from);
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const target = await open(to, flags, 0o600);
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
    const target = openSync(
      to,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
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
