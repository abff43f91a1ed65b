import type { ByteSource } from "../../src/node/bolt/stable-file.ts";

/** Bytes in memory, read like a file. */
export function bytesAsSource(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length) };
}
