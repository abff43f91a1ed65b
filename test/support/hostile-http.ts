import { createServer, type Socket } from "node:net";

/** Writes raw bytes for the n-th request of a connection. */
export type RawAnswer = (socket: Socket) => void;

export interface RawServer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** A server that answers each request with raw bytes, HTTP or not. */
export async function startRawServer(answer: RawAnswer): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => undefined);
    let asked = "";
    socket.on("data", (chunk: Buffer) => {
      asked += chunk.toString("latin1");
      for (let end = asked.indexOf("\r\n\r\n"); end !== -1; end = asked.indexOf("\r\n\r\n")) {
        asked = asked.slice(end + 4);
        answer(socket);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as { port: number }).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Repeats the piece until the client disconnects, or this often. */
export function pour(socket: Socket, piece: string | Uint8Array, times = Number.POSITIVE_INFINITY, end = ""): void {
  const bytes = Buffer.from(piece as string);
  const atOnce = Math.max(1, Math.floor((64 * 1024) / bytes.length));
  const chunk = Buffer.concat(Array.from({ length: atOnce }, () => bytes));
  let left = times;
  const more = (): void => {
    let takesMore = true;
    while (takesMore && left > 0 && !socket.destroyed) {
      takesMore = socket.write(left >= atOnce ? chunk : chunk.subarray(0, left * bytes.length));
      left -= atOnce;
    }
    if (left > 0 || socket.destroyed) return;
    socket.off("drain", more);
    if (end !== "") socket.write(end);
  };
  socket.on("drain", more);
  more();
}
