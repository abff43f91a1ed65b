/** One line as found. `bytes` is undefined when it was too long to be an entry and was passed over. */
export interface RawLine {
  readonly number: number;
  readonly bytes: Uint8Array | undefined;
  /** False only for the last line of a file that does not end in a newline. */
  readonly terminated: boolean;
}

/** The longest entry names a few dozen log files; anything beyond this is damage, and must not fill the memory. */
export const MAX_LINE_BYTES = 256 * 1024;

const NEWLINE = 0x0a;

/** Cuts a stream of chunks into lines, holding at most one line in memory. */
export async function* splitLines(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<RawLine> {
  let number = 1;
  let pieces: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      held += end - start;
      if (held <= MAX_LINE_BYTES) pieces.push(chunk.subarray(start, end));
      yield { number, bytes: held <= MAX_LINE_BYTES ? Buffer.concat(pieces) : undefined, terminated: true };
      number += 1;
      pieces = [];
      held = 0;
      start = end + 1;
    }
    held += chunk.length - start;
    if (held > MAX_LINE_BYTES) pieces = [];
    // A stream may reuse its buffer for the next chunk.
    else if (start < chunk.length) pieces.push(Uint8Array.from(chunk.subarray(start)));
  }
  if (held > 0) yield { number, bytes: held <= MAX_LINE_BYTES ? Buffer.concat(pieces) : undefined, terminated: false };
}
