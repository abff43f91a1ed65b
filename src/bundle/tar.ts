import { gunzipSync, gzipSync } from "node:zlib";
import { errorCode } from "../host/source.ts";

/** The few pages of tar (POSIX ustar) that a bundle needs, so that `tar xzf` reads it everywhere. */

export interface Member {
  readonly name: string;
  readonly text: string;
}

const BLOCK = 512;

export function packed(members: readonly Member[], modifiedAt: Date): Uint8Array {
  const blocks = members.flatMap(({ name, text }) => {
    const content = Buffer.from(text);
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(name, content.length, modifiedAt), content, padding];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 9 });
}

const NAME_BYTES = 100;

function header(name: string, size: number, modifiedAt: Date): Buffer {
  if (Buffer.byteLength(name) >= NAME_BYTES) throw new RangeError(`the name ${name} is too long for a tar header`);
  const block = Buffer.alloc(BLOCK);
  block.write(name, 0);
  block.write("0000600\0", 100);
  block.write("0000000\0", 108);
  block.write("0000000\0", 116);
  block.write(octal(size, 11), 124);
  block.write(octal(Math.floor(modifiedAt.getTime() / 1000), 11), 136);
  block.write("0", 156);
  block.write("ustar\x0000", 257);
  block.write(`${octal(checksum(block), 6).trimEnd()}\0 `, 148);
  return block;
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, "0")} `;
}

/** With the field of the checksum itself as spaces. */
function checksum(block: Uint8Array): number {
  return block.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0);
}

export interface UnpackLimits {
  readonly maxBytes: number;
  readonly maxMembers: number;
}

export type Unpacked =
  | { readonly ok: true; readonly members: ReadonlyMap<string, string> }
  | { readonly ok: false; readonly why: string };

/**
 * Reads an archive that anybody may have made, in memory: nothing is extracted, so a name is never a path, and what is
 * no regular file is passed over.
 */
export function unpacked(archive: Uint8Array, { maxBytes, maxMembers }: UnpackLimits): Unpacked {
  const opened = decompressed(archive, maxBytes);
  if (typeof opened === "string") return { ok: false, why: opened };
  const members = new Map<string, string>();
  for (let at = 0, count = 0; at + BLOCK <= opened.length; count++) {
    const block = opened.subarray(at, at + BLOCK);
    if (block.every((byte) => byte === 0)) return { ok: true, members };
    if (count === maxMembers) return { ok: false, why: `it has more than ${maxMembers} entries` };
    const size = numberIn(block, 124, 12);
    if (size === undefined || numberIn(block, 148, 8) !== checksum(block)) {
      return { ok: false, why: `it is no tar archive, or is damaged at byte ${at}` };
    }
    at += BLOCK;
    if (at + size > opened.length) return { ok: false, why: "it ends in the middle of an entry" };
    const name = textIn(block, 0, NAME_BYTES);
    const isFile = block[156] === 0x30 || block[156] === 0;
    if (isFile && members.has(name)) return { ok: false, why: "it has two entries of one name" };
    if (isFile) members.set(name, opened.toString("utf8", at, at + size));
    at += Math.ceil(size / BLOCK) * BLOCK;
  }
  return { ok: false, why: "it has no end: the archive is not complete" };
}

function decompressed(archive: Uint8Array, maxBytes: number): Buffer | string {
  try {
    return gunzipSync(archive, { maxOutputLength: maxBytes });
  } catch (thrown) {
    const isTooLarge = errorCode(thrown) === "ERR_BUFFER_TOO_LARGE";
    return isTooLarge ? `it holds more than ${maxBytes} bytes` : "it is no gzip archive, or is not complete";
  }
}

function textIn(block: Buffer, start: number, length: number): string {
  const field = block.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end === -1 ? length : end);
}

/** Octal digits; undefined for anything else, as the binary form of sizes beyond 8 GiB. */
function numberIn(block: Buffer, start: number, length: number): number | undefined {
  const digits = textIn(block, start, length).trim();
  return /^[0-7]{1,11}$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}
