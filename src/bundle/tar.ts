import { gunzipSync, gzipSync } from "node:zlib";
import { errorCode } from "../host/source.ts";

/** What unghost writes and reads of tar (POSIX ustar), so that `tar xzf` reads it everywhere. */
export type TarEntry =
  | { readonly type: "file"; readonly path: string; readonly content: Uint8Array; readonly mode: number }
  | { readonly type: "directory"; readonly path: string; readonly mode: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

const BLOCK = 512;
const TYPE_FLAGS = { file: "0", symlink: "2", directory: "5" } as const;

/** Owned by root; equal entries and times make equal archives. */
export function tar(entries: readonly TarEntry[], modifiedAt = new Date(0)): Buffer {
  const blocks = entries.flatMap((entry) => {
    const content = entry.type === "file" ? entry.content : Buffer.alloc(0);
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(entry, content.length, modifiedAt), content, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

const NAME_BYTES = 100;

function header(entry: TarEntry, size: number, modifiedAt: Date): Buffer {
  const target = entry.type === "symlink" ? entry.target : "";
  const tooLong = [entry.path, target].find((name) => Buffer.byteLength(name) > NAME_BYTES);
  if (tooLong !== undefined) throw new RangeError(`the name ${tooLong} is too long for a tar header`);
  const block = Buffer.alloc(BLOCK);
  block.write(entry.path, 0);
  writeOctal(block, entry.type === "symlink" ? 0o777 : entry.mode, 100, 8);
  writeOctal(block, 0, 108, 8);
  writeOctal(block, 0, 116, 8);
  writeOctal(block, size, 124, 12);
  writeOctal(block, Math.floor(modifiedAt.getTime() / 1000), 136, 12);
  block.write(TYPE_FLAGS[entry.type], 156);
  block.write(target, 157);
  block.write("ustar\x0000", 257);
  writeOctal(block, checksum(block), 148, 7);
  block.write(" ", 155);
  return block;
}

function writeOctal(block: Buffer, value: number, offset: number, width: number): void {
  block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, offset);
}

/** With the field of the checksum itself as spaces. */
function checksum(block: Uint8Array): number {
  return block.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 0x20 : byte), 0);
}

export interface Member {
  readonly name: string;
  readonly text: string;
}

/** Readable by its owner alone. */
export function packed(members: readonly Member[], modifiedAt: Date): Uint8Array {
  const entries = members.map(
    ({ name, text }): TarEntry => ({ type: "file", path: name, content: Buffer.from(text), mode: 0o600 }),
  );
  return gzipSync(tar(entries, modifiedAt), { level: 9 });
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
