import { type HeaderField, STATIC_TABLE } from "./static-table.ts";

/**
 * Sets the size of the server's dynamic table to 0. Sent with every block, so that no block depends on an earlier one,
 * and the size is within any limit that the server announces later.
 */
const NO_DYNAMIC_TABLE = 0x20;
const INDEXED = 0x80;
const LITERAL = 0x00;

/** The maximum size of the length prefixes and indexes of one field. */
const MAX_OVERHEAD = 16;

const INDEX_OF_NAME = new Map(STATIC_TABLE.map(([name], index) => [name, index + 1] as const).reverse());
const INDEX_OF_FIELD = new Map(STATIC_TABLE.map((field, index) => [keyOf(field), index + 1] as const));

/** Encodes a header block: indexed from the static table if possible, else as plain ASCII. */
export function encodeHeaders(fields: readonly HeaderField[]): Buffer {
  let most = 1;
  for (const [name, value] of fields) most += name.length + value.length + MAX_OVERHEAD;
  const block = Buffer.allocUnsafe(most);
  let at = block.writeUInt8(NO_DYNAMIC_TABLE);
  for (const field of fields) at = writeField(block, at, field);
  return block.subarray(0, at);
}

function writeField(block: Buffer, at: number, field: HeaderField): number {
  const [name, value] = field;
  const index = INDEX_OF_FIELD.get(keyOf(field));
  if (index !== undefined) return writeInteger(block, at, INDEXED, 7, index);
  const nameIndex = INDEX_OF_NAME.get(name);
  if (nameIndex !== undefined) return writeString(block, writeInteger(block, at, LITERAL, 4, nameIndex), value);
  return writeString(block, writeString(block, block.writeUInt8(LITERAL, at), name), value);
}

function writeString(block: Buffer, at: number, text: string): number {
  const start = writeInteger(block, at, 0, 7, text.length);
  return start + block.write(text, start, "latin1");
}

/** RFC 7541, 5.1: the rest follows in groups of seven bits, the lowest first. */
function writeInteger(block: Buffer, at: number, pattern: number, prefixBits: number, value: number): number {
  const most = (1 << prefixBits) - 1;
  if (value < most) return block.writeUInt8(pattern | value, at);
  let next = block.writeUInt8(pattern | most, at);
  let left = value - most;
  for (; left >= 0x80; left >>= 7) next = block.writeUInt8((left & 0x7f) | 0x80, next);
  return block.writeUInt8(left, next);
}

function keyOf([name, value]: HeaderField): string {
  return `${name}\n${value}`;
}
