import { ReceiveWindow } from "./flow-control.ts";
import type { Headers } from "./hpack-decode.ts";
import { WINDOW_BYTES } from "./settings.ts";

/**
 * How a stream ended, other than by our own doing.
 *
 * - `complete`: the server has sent END_STREAM.
 * - `reset`: the server gave this stream up.
 * - `lost`: the connection went away.
 * - `failed`: there never was a connection, or the server did not keep to the protocol.
 */
export type StreamEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "reset"; readonly errorCode: number }
  | { readonly kind: "lost"; readonly cause?: Error }
  | { readonly kind: "failed"; readonly error: Error };

/** Who made the request. None of these may throw. */
export interface StreamListener {
  /** Once for the head of the answer, once for its trailers. */
  onHeaders(headers: Headers): void;
  /** What is taken care of is to be given back by Connection.consumed, or the server stops sending. */
  onData(bytes: Uint8Array): void;
  onEnd(end: StreamEnd): void;
}

/** One request and its answer, as the connection keeps them. */
export class Stream {
  readonly headerBlock: Uint8Array;
  /** Never empty: its last byte ends our side of the stream. */
  readonly body: Uint8Array;
  readonly listener: StreamListener;
  readonly receiveWindow = new ReceiveWindow(WINDOW_BYTES);
  /** Waiting until the server takes one more; only then it has an id. */
  state: "waiting" | "open" | "closed" = "waiting";
  id = 0;
  /** Opened before the server has announced its limit. */
  unasked = false;
  sendWindow = 0;
  sent = 0;
  /** The head of the answer is here. */
  answered = false;

  constructor(headerBlock: Uint8Array, body: Uint8Array, listener: StreamListener) {
    this.headerBlock = headerBlock;
    this.body = body;
    this.listener = listener;
  }
}
