import type { Socket } from "node:net";

/** Collects frames and writes those of one turn together: a system call costs more than all the rest of a small call. */
export class Outbox {
  readonly #socket: Socket;
  #frames: Buffer[] = [];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  send(frame: Buffer): void {
    this.#frames.push(frame);
    if (this.#frames.length === 1) queueMicrotask(() => this.flush());
  }

  flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    if (frames.length > 0 && !this.#socket.destroyed) this.#socket.write(Buffer.concat(frames));
  }
}
