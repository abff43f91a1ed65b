import { ErrorCode, LARGEST_31_BITS, ProtocolError } from "./protocol.ts";
import type { Stream } from "./stream.ts";

/**
 * RFC 9113 recommends a limit of at least 100 concurrent streams. A server with a lower limit refuses the stream, and
 * it is sent again.
 */
const MAX_UNASKED = 100;

/** The streams of one connection: queued ones, and open ones by id. */
export class Streams {
  readonly #waiting = new Set<Stream>();
  readonly #open = new Map<number, Stream>();
  #nextId: number;
  #most = MAX_UNASKED;

  constructor(firstId: number) {
    this.#nextId = firstId;
  }

  /** Whether there is an unused id for one more stream after all queued ones. */
  get hasIds(): boolean {
    return this.#nextId + 2 * this.#waiting.size <= LARGEST_31_BITS;
  }

  get usedUp(): boolean {
    return this.#nextId > LARGEST_31_BITS;
  }

  get open(): Iterable<Stream> {
    return this.#open.values();
  }

  get noneOpen(): boolean {
    return this.#open.size === 0;
  }

  allow(most: number): void {
    this.#most = most;
  }

  /** Queues a stream, for the first time or again. */
  add(stream: Stream): void {
    this.#open.delete(stream.id);
    stream.state = "waiting";
    this.#waiting.add(stream);
  }

  /** Opens the oldest queued stream, if the server allows one more. */
  openNext(): Stream | undefined {
    const [stream] = this.#waiting;
    if (stream === undefined || this.#open.size >= this.#most) return undefined;
    this.#waiting.delete(stream);
    stream.state = "open";
    stream.id = this.#nextId;
    this.#nextId += 2;
    this.#open.set(stream.id, stream);
    return stream;
  }

  /** Undefined for a closed stream, whose frames are ignored. */
  find(id: number): Stream | undefined {
    if (id % 2 === 0 || id >= this.#nextId) {
      throw new ProtocolError(ErrorCode.protocolError, `a frame on stream ${id}, which was never opened`);
    }
    return this.#open.get(id);
  }

  remove(stream: Stream): void {
    stream.state = "closed";
    this.#open.delete(stream.id);
    this.#waiting.delete(stream);
  }

  removeWaiting(): readonly Stream[] {
    const removed = [...this.#waiting];
    for (const stream of removed) this.remove(stream);
    return removed;
  }

  removeAll(): readonly Stream[] {
    const removed = [...this.#open.values(), ...this.#waiting];
    for (const stream of removed) this.remove(stream);
    return removed;
  }
}
