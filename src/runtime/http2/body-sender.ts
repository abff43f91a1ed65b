import { grownWindow } from "./flow-control.ts";
import { encodeFrame } from "./frames.ts";
import { DEFAULT_WINDOW, Flag, FrameType } from "./protocol.ts";
import { DEFAULT_SETTINGS, type PeerSettings } from "./settings.ts";
import type { Stream } from "./stream.ts";

/** Sends request bodies within the flow-control windows of the stream and of the connection. */
export class BodySender {
  readonly #send: (frame: Buffer) => void;
  readonly #held = new Set<Stream>();
  #settings = DEFAULT_SETTINGS;
  #window = DEFAULT_WINDOW;

  constructor(send: (frame: Buffer) => void) {
    this.#send = send;
  }

  /** Sends what the windows allow now, and queues the rest. */
  begin(stream: Stream): void {
    stream.sent = 0;
    stream.sendWindow = this.#settings.initialWindowSize;
    this.#sendSome(stream);
  }

  drop(stream: Stream): void {
    this.#held.delete(stream);
  }

  /** A server may reduce its initial window size, which makes a window negative for a while (RFC 9113, 6.9.2). */
  apply(settings: PeerSettings, open: Iterable<Stream>): void {
    const difference = settings.initialWindowSize - this.#settings.initialWindowSize;
    this.#settings = settings;
    for (const stream of open) stream.sendWindow = grownWindow(stream.sendWindow, difference);
    this.#sendHeld();
  }

  growConnection(bytes: number): void {
    this.#window = grownWindow(this.#window, bytes);
    this.#sendHeld();
  }

  growStream(stream: Stream, bytes: number): void {
    stream.sendWindow = grownWindow(stream.sendWindow, bytes);
    this.#sendSome(stream);
  }

  #sendHeld(): void {
    for (const stream of this.#held) this.#sendSome(stream);
  }

  #sendSome(stream: Stream): void {
    while (stream.sent < stream.body.length) {
      const room = Math.min(this.#window, stream.sendWindow, this.#settings.maxFrameSize);
      if (room <= 0) {
        this.#held.add(stream);
        return;
      }
      const part = stream.body.subarray(stream.sent, stream.sent + room);
      this.#window -= part.length;
      stream.sendWindow -= part.length;
      stream.sent += part.length;
      const isLast = stream.sent === stream.body.length;
      this.#send(encodeFrame(FrameType.data, isLast ? Flag.endStream : Flag.none, stream.id, part));
    }
    this.#held.delete(stream);
  }
}
