import type { Wire, WireListener } from "./wire.ts";

/** Asked for by name when it is needed: an import would load it everywhere. */
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
