import type { Wire, WireListener } from "./wire.ts";

/** The part of Bun's sockets that is used here. */
interface BunSocket {
  /** How many bytes the kernel accepted; the rest is sent on `drain`. */
  write(bytes: Uint8Array): number;
  terminate(): void;
}

declare const Bun: {
  connect(options: {
    readonly unix: string;
    readonly socket: {
      open(socket: BunSocket): void;
      data(socket: BunSocket, bytes: Buffer): void;
      drain(): void;
      close(socket: BunSocket, error?: Error): void;
      error(socket: BunSocket, error: Error): void;
      connectError(socket: BunSocket, error: Error): void;
    };
  }): Promise<BunSocket>;
};

export function bunWire(unix: string, { onOpen, onBytes, onEnd }: WireListener): Wire {
  let socket: BunSocket | undefined;
  let isClosed = false;
  /** Bytes that the kernel has not accepted yet, the oldest first. */
  const waiting: Uint8Array[] = [];

  function send(): void {
    for (let next = waiting[0]; socket !== undefined && next !== undefined; next = waiting[0]) {
      // Negative for a closed socket; its end is reported separately.
      const taken = Math.max(0, socket.write(next));
      if (taken < next.length) {
        waiting[0] = next.subarray(taken);
        return;
      }
      waiting.shift();
    }
  }

  const connecting = Bun.connect({
    unix,
    socket: {
      open: (opened) => {
        if (isClosed) return opened.terminate();
        socket = opened;
        send();
        onOpen();
      },
      data: (_socket, bytes) => onBytes(bytes),
      drain: send,
      close: (_socket, error) => {
        socket = undefined;
        onEnd(error);
      },
      error: (_socket, error) => onEnd(error),
      // May be called within connect(), before the caller has the wire.
      connectError: (_socket, error) => queueMicrotask(() => onEnd(error)),
    },
  });
  // The listener was already notified.
  connecting.catch(() => undefined);

  return {
    write: (bytes) => {
      waiting.push(bytes);
      if (waiting.length === 1) send();
    },
    close: () => {
      isClosed = true;
      socket?.terminate();
    },
  };
}
