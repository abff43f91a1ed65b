import { createServer, type Server, type Socket } from "node:net";

/** A listener on a unix socket with the test's handler for each connection. */
export async function listenRaw(
  path: string,
  onConnection: (socket: Socket) => void,
): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    // The peer may disconnect first, which some tests need.
    socket.on("error", () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  return {
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return closed;
    },
  };
}
