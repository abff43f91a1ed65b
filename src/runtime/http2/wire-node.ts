import type { Wire, WireListener } from "./wire.ts";

/** Loaded on demand: an import would load it at every start. */
export function nodeWire(path: string, { onOpen, onBytes, onEnd }: WireListener): Wire {
  const socket = process.getBuiltinModule("node:net").connect(path);
  socket.once("connect", onOpen);
  socket.on("data", onBytes);
  socket.on("error", onEnd);
  socket.on("end", () => onEnd(undefined));
  socket.on("close", () => onEnd(undefined));
  return {
    write: (bytes) => {
      if (!socket.destroyed) socket.write(bytes);
    },
    close: () => void socket.destroy(),
  };
}
