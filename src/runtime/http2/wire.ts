import { bunWire } from "./wire-bun.ts";
import { nodeWire } from "./wire-node.ts";

/** A connection to a unix socket, as bytes. */
export interface Wire {
  /** What is written before it is open waits until it is. */
  write(bytes: Uint8Array): void;
  /** Ends it at once. What is under way is lost. */
  close(): void;
}

/** Gets no event before the caller has the wire. */
export interface WireListener {
  /** What was written until now is on its way. */
  readonly onOpen: () => void;
  readonly onBytes: (bytes: Buffer) => void;
  /** Perhaps more than once, and after close(), too. */
  readonly onEnd: (error: Error | undefined) => void;
}

/** By the engine's own means where there are any: node:net and the streams below it take Bun 2 ms to load. */
export function openWire(path: string, listener: WireListener): Wire {
  return process.versions["bun"] === undefined ? nodeWire(path, listener) : bunWire(path, listener);
}
