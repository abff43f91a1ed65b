import { bunWire } from "./wire-bun.ts";
import { nodeWire } from "./wire-node.ts";

/** A byte stream over a unix socket. */
export interface Wire {
  /** Data written before it is open is queued. */
  write(bytes: Uint8Array): void;
  /** Closes it at once. Unsent data is lost. */
  close(): void;
}

/** No event is delivered before the caller has the wire. */
export interface WireListener {
  /** Everything written until now was sent. */
  readonly onOpen: () => void;
  readonly onBytes: (bytes: Buffer) => void;
  /** May be called more than once, and after close(). */
  readonly onEnd: (error: Error | undefined) => void;
}

/** Uses Bun's sockets if available: node:net and its streams take 2 ms to load. */
export function openWire(path: string, listener: WireListener): Wire {
  return process.versions["bun"] === undefined ? nodeWire(path, listener) : bunWire(path, listener);
}
