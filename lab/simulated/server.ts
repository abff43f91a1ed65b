import { rmSync } from "node:fs";
import { createServer, type Http2Server, type ServerHttp2Session } from "node:http2";
import { answerCall } from "./answer-call.ts";
import type { Handlers } from "./handlers.ts";

/** A gRPC server on a unix socket that can be stopped as abruptly as a killed runtime. */
export interface SocketServer {
  listen(): Promise<void>;
  /** Closes the socket and every connection abruptly. */
  kill(): Promise<void>;
}

/**
 * Node's default of 10 MB refuses new calls while a large list is being sent, and never subtracts what a client did not
 * read. In practice: no limit.
 */
const SESSION_MEMORY_MB = 16 * 1024;

export function socketServer(path: string, handlers: Handlers): SocketServer {
  const sessions = new Set<ServerHttp2Session>();
  let server: Http2Server | undefined;

  return {
    listen: () => {
      rmSync(path, { force: true });
      const started = createServer({ maxSessionMemory: SESSION_MEMORY_MB });
      server = started;
      started.on("stream", (stream, headers) => void answerCall(handlers, stream, headers));
      started.on("session", (session) => {
        sessions.add(session);
        session.once("close", () => sessions.delete(session));
      });
      return new Promise((resolve, reject) => {
        started.once("error", reject);
        started.listen(path, resolve);
      });
    },
    kill: async () => {
      const running = server;
      if (!running) return;
      server = undefined;
      const closed = new Promise<void>((resolve) => running.close(() => resolve()));
      for (const session of sessions) session.destroy();
      await closed;
    },
  };
}
