/** One line without its newline. */
export interface RawLine {
  readonly number: number;
  /** Truncated if it is longer than the limit. */
  readonly bytes: Uint8Array;
  readonly isCut: boolean;
  /** False only for the last line of a file that does not end in a newline. */
  readonly terminated: boolean;
}

const NEWLINE = 0x0a;

/** Splits a stream of chunks into lines, holding at most `maxBytes` of one in memory. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): AsyncGenerator<RawLine> {
  let number = 1;
  let pieces: Uint8Array[] = [];
  let length = 0;
  const take = (piece: Uint8Array): void => {
    const room = maxBytes - Math.min(length, maxBytes);
    if (room > 0 && piece.length > 0) pieces.push(piece.subarray(0, room));
    length += piece.length;
  };
  const line = (terminated: boolean): RawLine => {
    const found = { number, bytes: Buffer.concat(pieces), isCut: length > maxBytes, terminated };
    number += 1;
    pieces = [];
    length = 0;
    return found;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      take(chunk.subarray(start, end));
      yield line(true);
      start = end + 1;
    }
    // A stream may reuse its buffer for the next chunk.
    take(Uint8Array.from(chunk.subarray(start)));
  }
  if (length > 0) yield line(false);
}
