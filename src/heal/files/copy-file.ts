import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { FileState } from "../journal/entry.ts";
import { chunksOf } from "../journal/reader.ts";
import { hasContent, openForReading } from "./file-identity.ts";

/**
 * Copies a file to another file system with mode, owner and times, syncs it and reads it back.
 * False: the copy does not have the content that `state` names, because the source was changed meanwhile.
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
      await target.chown(state.uid, state.gid);
      await target.chmod(state.mode);
      await target.utimes(seconds(state.atimeNs), seconds(state.mtimeNs));
      await target.sync();
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
  return hasContent(to, state);
}

/** utimes takes seconds as a double, good for microseconds; no reader of these files looks at what is beyond. */
function seconds(nanoseconds: bigint): number {
  return Number(nanoseconds / 1000n) / 1e6;
}
