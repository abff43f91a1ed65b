import { MAX_MESSAGE_BYTES } from "./grpc-frames.ts";

/** The server sends more than any runtime would: it is given up before it takes the memory of the node. */
export class AnswerLimitError extends Error {
  override readonly name = "AnswerLimitError";
}

/** How much one answer, or all answers of one connection, may be. */
export interface AnswerLimits {
  readonly bytes: number;
  readonly messages: number;
}

/** One message, its frame, and nothing after it. */
export const ONE_MESSAGE: AnswerLimits = { bytes: MAX_MESSAGE_BYTES + 1024, messages: 1 };

/** A record is some 10 KB with its OCI spec, of which little is kept: this is a node with ten thousand of them. */
export const LIST_STREAM: AnswerLimits = { bytes: 128 * 1024 * 1024, messages: 50_000 };

/** Events go on for as long as both sides like, and are not kept. */
export const ENDLESS: AnswerLimits = { bytes: Number.POSITIVE_INFINITY, messages: Number.POSITIVE_INFINITY };

/** All answers to one scan together. Lists that are read in parts are several. */
export const BYTES_PER_SCAN = 256 * 1024 * 1024;

/** Counts what arrives; throws as soon as it is too much. */
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
