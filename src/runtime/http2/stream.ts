import { ReceiveWindow } from "./flow-control.ts";
import type { Headers } from "./hpack-decode.ts";
import { WINDOW_BYTES } from "./settings.ts";

/**
 * How a stream ended, except for our own cancel.
 *
 * - `complete`: the server has sent END_STREAM.
 * - `reset`: the server reset this stream.
 * - `lost`: the connection was closed.
 * - `failed`: the connection could not be opened, or the server violated the protocol.
 */
export type StreamEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "reset"; readonly errorCode: number }
  | { readonly kind: "lost"; readonly cause?: Error }
  | { readonly kind: "failed"; readonly error: Error };

/** The caller of the request. None of these may throw. */
export interface StreamListener {
  /** Called for the headers of the answer, and for its trailers. */
  onHeaders(headers: Headers): void;
  /** Consumed bytes must be passed to Connection.consumed, or the server stops sending. */
  onData(bytes: Uint8Array): void;
  onEnd(end: StreamEnd): void;
}

/** One request and its answer. */
export class Stream {
  readonly headerBlock: Uint8Array;
  /** Never empty: its last byte ends our side of the stream. */
  readonly body: Uint8Array;
  readonly listener: StreamListener;
  readonly receiveWindow = new ReceiveWindow(WINDOW_BYTES);
  /** Waits until the server allows one more stream; only then it has an id. */
  state: "waiting" | "open" | "closed" = "waiting";
  id = 0;
  /** Opened before the server announced its limit. */
  unasked = false;
  sendWindow = 0;
  sent = 0;
  /** The headers of the answer have arrived. */
  answered = false;

  constructor(headerBlock: Uint8Array, body: Uint8Array, listener: StreamListener) {
    this.headerBlock = headerBlock;
    this.body = body;
    this.listener = listener;
  }
}
