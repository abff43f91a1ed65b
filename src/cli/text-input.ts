import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";

/** Two bytes name all three forms. */
const HEAD_BYTES = 2;
const GZIP = 0x1f8b;
const UTF16_LE = 0xfffe;
const UTF16_BE = 0xfeff;

/** A log as people have it: as it was written, compressed by logrotate, or in UTF-16 by PowerShell's `>`. */
export async function* textChunks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { head, all } = await peek(chunks[Symbol.asyncIterator]());
  if (head === GZIP) yield* unzipped(all);
  else if (head === UTF16_LE) yield* utf8Of("utf-16le", all);
  else if (head === UTF16_BE) yield* utf8Of("utf-16be", all);
  else yield* all;
}

interface Peeked {
  readonly head: number | undefined;
  /** What was read for the head, and the rest. */
  readonly all: AsyncGenerator<Uint8Array>;
}

async function peek(source: AsyncIterator<Uint8Array>): Promise<Peeked> {
  let start = Buffer.alloc(0);
  let isEnd = false;
  while (start.length < HEAD_BYTES && !isEnd) {
    const { done, value } = await source.next();
    if (done === true) isEnd = true;
    else start = Buffer.concat([start, value]);
  }
  const head = start.length < HEAD_BYTES ? undefined : start.readUInt16BE(0);
  return { head, all: from(start, isEnd, source) };
}

async function* from(start: Buffer, isEnd: boolean, source: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    if (start.length > 0) yield start;
    for (let next = isEnd ? undefined : await source.next(); next?.done === false; next = await source.next()) {
      yield next.value;
    }
  } finally {
    await source.return?.();
  }
}

async function* unzipped(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  // Its error reaches the reader of `gunzip`.
  pipeline(Readable.from(chunks), gunzip, () => undefined);
  yield* gunzip;
}

async function* utf8Of(
  encoding: "utf-16le" | "utf-16be",
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder(encoding);
  const encoder = new TextEncoder();
  for await (const chunk of chunks) yield encoder.encode(decoder.decode(chunk, { stream: true }));
}
