import { MAX_MESSAGE_BYTES } from "./grpc-frames.ts";

/** The server sends more than any runtime would: the call is aborted before it uses up the node's memory. */
export class AnswerLimitError extends Error {
  override readonly name = "AnswerLimitError";
}

/** The limit of one answer, or of all answers of one connection. */
export interface AnswerLimits {
  readonly bytes: number;
  readonly messages: number;
}

/** One message with its frame. */
export const ONE_MESSAGE: AnswerLimits = { bytes: MAX_MESSAGE_BYTES + 1024, messages: 1 };

/** A record is some 10 KB with its OCI spec, of which little is kept: this allows ten thousand of them. */
export const LIST_STREAM: AnswerLimits = { bytes: 128 * 1024 * 1024, messages: 50_000 };

/** Event streams have no end, and are not kept. */
export const ENDLESS: AnswerLimits = { bytes: Number.POSITIVE_INFINITY, messages: Number.POSITIVE_INFINITY };

/** All answers of one scan together. A list that is read in parts counts several times. */
export const BYTES_PER_SCAN = 256 * 1024 * 1024;

/** Counts received bytes; throws as soon as the limit is exceeded. */
export class AnswerMeter {
  readonly #what: string;
  readonly #limits: AnswerLimits;
  #bytes = 0;
  #messages = 0;

  constructor(what: string, limits: AnswerLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#limits.bytes) this.#refuse(`${this.#limits.bytes} bytes`);
  }

  addMessages(count: number): void {
    this.#messages += count;
    if (this.#messages > this.#limits.messages) this.#refuse(`${this.#limits.messages} messages`);
  }

  #refuse(limit: string): never {
    throw new AnswerLimitError(`${this.#what} did not end after ${limit}`);
  }
}
