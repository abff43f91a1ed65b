import type { Wire } from "./wire.ts";

/** Collects the frames of one event-loop turn into one write: a system call is the largest cost of a small call. */
export class Outbox {
  readonly #wire: Pick<Wire, "write">;
  #frames: Buffer[] = [];

  constructor(wire: Pick<Wire, "write">) {
    this.#wire = wire;
  }

  send(frame: Buffer): void {
    this.#frames.push(frame);
    if (this.#frames.length === 1) queueMicrotask(() => this.flush());
  }

  flush(): void {
    const frames = this.#frames;
    this.#frames = [];
    if (frames.length > 0) this.#wire.write(Buffer.concat(frames));
  }
}
