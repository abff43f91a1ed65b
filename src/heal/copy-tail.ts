import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { openForReading } from "./file-identity.ts";

/** Copies the last `maxBytes` of a file, from the start of a line if one begins there. Gives the bytes copied. */
export async function copyTail(from: string, to: string, maxBytes: number): Promise<number> {
  const source = await openForReading(from);
  try {
    const { size } = await source.stat();
    const start = size <= maxBytes ? 0 : await nextLineStart(source, size - maxBytes, size);
    const target = await open(
      to,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      0o600,
    );
    try {
      const buffer = Buffer.alloc(64 * 1024);
      let position = start;
      while (position < size) {
        const wanted = Math.min(buffer.length, size - position);
        const { bytesRead } = await source.read(buffer, 0, wanted, position);
        if (bytesRead === 0) break;
        await target.writeFile(buffer.subarray(0, bytesRead));
        position += bytesRead;
      }
      await target.sync();
      return position - start;
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

/** A log line is at most 16 KiB as the runtime writes it; a file without a newline there is cut where it falls. */
async function nextLineStart(source: FileHandle, from: number, size: number): Promise<number> {
  const buffer = Buffer.alloc(Math.min(32 * 1024, size - from));
  const { bytesRead } = await source.read(buffer, 0, buffer.length, from);
  const newline = buffer.subarray(0, bytesRead).indexOf(0x0a);
  return newline === -1 ? from : from + newline + 1;
}
