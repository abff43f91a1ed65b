import { ErrorCode, LARGEST_31_BITS, ProtocolError } from "./protocol.ts";

/** How much the peer may still send, and how many received bytes were not yet acknowledged by a WINDOW_UPDATE. */
export class ReceiveWindow {
  readonly #size: number;
  #left: number;
  #consumed = 0;

  constructor(size: number) {
    this.#size = size;
    this.#left = size;
  }

  receive(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0) throw new ProtocolError(ErrorCode.flowControlError, "more data than was allowed");
  }

  /** Returns the increment to grant now: 0 until half of the window is used up. */
  consume(bytes: number): number {
    this.#consumed += bytes;
    if (this.#consumed * 2 < this.#size) return 0;
    const granted = this.#consumed;
    this.#consumed = 0;
    this.#left += granted;
    return granted;
  }
}

/** A window of the peer, after a WINDOW_UPDATE. */
export function grownWindow(window: number, by: number): number {
  if (window + by > LARGEST_31_BITS) {
    throw new ProtocolError(ErrorCode.flowControlError, `a window of ${window + by} bytes`);
  }
  return window + by;
}
