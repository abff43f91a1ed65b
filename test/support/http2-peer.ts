import { createServer, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";

export interface Http2Peer {
  /** Connections that are still open. */
  connections(): number;
  close(): Promise<void>;
}

/** An HTTP/2 server on a unix socket that does with each stream what the test says, gRPC or not. */
export async function listenHttp2(
  path: string,
  onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
): Promise<Http2Peer> {
  const sessions = new Set<ServerHttp2Session>();
  const server = createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream, headers) => {
    // The client may go away first; that is what some tests are about.
    stream.on("error", () => stream.close());
    onStream(stream, headers);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  return {
    connections: () => sessions.size,
    close: () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const session of sessions) session.destroy();
      return closed;
    },
  };
}
