import { GrpcError, GrpcStatus } from "./grpc-status.ts";

/** containerd sends at most 16 MiB by default; CRI-O and tuned nodes send more. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/** One byte for the compression flag, four for the length. */
const HEADER_BYTES = 5;

export function frame(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(HEADER_BYTES + message.length);
  new DataView(framed.buffer).setUint32(1, message.length);
  framed.set(message, HEADER_BYTES);
  return framed;
}

/** Splits a byte stream into messages, independent of chunk boundaries. */
export class MessageReader {
  #chunks: Uint8Array[] = [];
  #buffered = 0;

  /** Accepts the next bytes and returns the messages that they complete. */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    const messages: Uint8Array[] = [];
    while (this.#buffered >= HEADER_BYTES) {
      const length = this.#announcedLength();
      if (this.#buffered < HEADER_BYTES + length) break;
      const whole = this.#joined();
      messages.push(whole.subarray(HEADER_BYTES, HEADER_BYTES + length));
      this.#chunks = [whole.subarray(HEADER_BYTES + length)];
      this.#buffered -= HEADER_BYTES + length;
    }
    return messages;
  }

  /** Throws when the bytes end within a message. */
  end(): void {
    if (this.#buffered > 0) throw new GrpcError(GrpcStatus.internal, "the answer ends in the middle of a message");
  }

  #announcedLength(): number {
    const first = this.#chunks[0];
    const head = first !== undefined && first.length >= HEADER_BYTES ? first : this.#joined();
    if (head[0] !== 0) throw new GrpcError(GrpcStatus.internal, "the answer is compressed, which was not asked for");
    const length = new DataView(head.buffer, head.byteOffset).getUint32(1);
    if (length > MAX_MESSAGE_BYTES) {
      throw new GrpcError(
        GrpcStatus.resourceExhausted,
        `received message larger than max (${length} vs. ${MAX_MESSAGE_BYTES})`,
      );
    }
    return length;
  }

  #joined(): Uint8Array {
    const [only] = this.#chunks;
    if (only !== undefined && this.#chunks.length === 1) return only;
    const whole = Buffer.concat(this.#chunks);
    this.#chunks = [whole];
    return whole;
  }
}
