import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream, type ServerOptions } from "node:http2";
import type { Socket } from "node:net";

export interface Http2Peer {
  /** The number of connections so far. */
  connections(): number;
  close(): Promise<void>;
}

/** An HTTP/2 server on a unix socket with the test's handler for each stream, gRPC or not. */
export async function listenHttp2(
  path: string,
  onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
  options: ServerOptions = {},
): Promise<Http2Peer> {
  const sockets = new Set<Socket>();
  const server = createServer(options);
  let opened = 0;
  server.on("connection", (socket: Socket) => {
    opened += 1;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("stream", (stream, headers) => {
    // The client may disconnect first, which some tests need.
    stream.on("error", () => stream.close());
    onStream(stream, headers);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  return {
    connections: () => opened,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return closed;
    },
  };
}
