import { huffmanDecoded } from "./huffman.ts";
import { ErrorCode, ProtocolError } from "./protocol.ts";
import { type HeaderField, STATIC_TABLE } from "./static-table.ts";

/** By name. The last one of duplicate headers counts; none that is read here may be duplicated. */
export type Headers = ReadonlyMap<string, string>;

/**
 * Cache of short decoded blocks. A server repeats the same headers, and each block can be decoded alone, so the same
 * bytes mean the same on any connection. Decoding them again would be a third of the cost of a small call.
 */
const remembered = new Map<string, Headers>();
const MAX_REMEMBERED = 64;
const LONGEST_REMEMBERED = 128;

/** Decodes one complete header block. */
export function decodeHeaders(block: Buffer): Headers {
  if (block.length > LONGEST_REMEMBERED) return new BlockReader(block).headers();
  const bytes = block.toString("latin1");
  const known = remembered.get(bytes);
  if (known !== undefined) return known;
  const headers = new BlockReader(block).headers();
  if (remembered.size === MAX_REMEMBERED) remembered.clear();
  remembered.set(bytes, headers);
  return headers;
}

/** A number in a block of limited size never needs more than four continuation bytes. */
const LONGEST_INTEGER_BYTES = 4;

class BlockReader {
  readonly #block: Buffer;
  #at = 0;

  constructor(block: Buffer) {
    this.#block = block;
  }

  headers(): Headers {
    const headers = new Map<string, string>();
    while (this.#at < this.#block.length) {
      const first = this.#peek();
      if ((first & 0xe0) === 0x20) {
        this.#tableSize(headers.size === 0);
        continue;
      }
      const [name, value] = first & 0x80 ? this.#known(7) : this.#literal(first);
      headers.set(name, value);
    }
    return headers;
  }

  /** Literals with and without indexing are the same, because a table of size 0 keeps nothing. */
  #literal(first: number): HeaderField {
    const prefixBits = first & 0x40 ? 6 : 4;
    const named = (first & ((1 << prefixBits) - 1)) !== 0;
    if (named) return [this.#known(prefixBits)[0], this.#string()];
    this.#at += 1;
    const name = this.#string();
    return [name, this.#string()];
  }

  #known(prefixBits: number): HeaderField {
    const index = this.#integer(prefixBits);
    const field = STATIC_TABLE[index - 1];
    // A higher index refers to the dynamic table, which our SETTINGS disable before the first answer, so the meaning is
    // unknown.
    if (field === undefined) throw malformed(`a header by the index ${index}, which stands for nothing`);
    return field;
  }

  #tableSize(isFirst: boolean): void {
    if (!isFirst) throw malformed("a change of the table's size in the middle of a block");
    if (this.#integer(5) > 0) throw malformed("a table larger than allowed");
  }

  #string(): string {
    const isHuffman = (this.#peek() & 0x80) !== 0;
    const length = this.#integer(7);
    const bytes = this.#block.subarray(this.#at, this.#at + length);
    if (bytes.length < length) throw malformed("a string that is cut off");
    this.#at += length;
    return isHuffman ? huffmanDecoded(bytes) : bytes.toString("latin1");
  }

  #integer(prefixBits: number): number {
    const most = (1 << prefixBits) - 1;
    let value = this.#byte() & most;
    if (value < most) return value;
    for (let index = 0; index < LONGEST_INTEGER_BYTES; index++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * index);
      if (byte < 0x80) return value;
    }
    throw malformed("a number that is too large");
  }

  #peek(): number {
    const byte = this.#block[this.#at];
    if (byte === undefined) throw malformed("a block that is cut off");
    return byte;
  }

  #byte(): number {
    const byte = this.#peek();
    this.#at += 1;
    return byte;
  }
}

function malformed(what: string): ProtocolError {
  return new ProtocolError(ErrorCode.compressionError, `headers with ${what}`);
}
