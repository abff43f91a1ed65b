import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { type CallBounds, type RunningCall, startCall } from "./grpc-call.ts";
import { frame, MessageReader } from "./grpc-frames.ts";
import { GrpcError, GrpcStatus } from "./grpc-status.ts";

/** One remote procedure: where it is, and how its messages are written and read. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly encode: (request: Request) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Response;
}

/**
 * gRPC over a unix socket: unary calls and server streams, which is all that the runtimes' APIs need. One HTTP/2
 * connection, opened by the first call and opened anew by the first call after it broke.
 */
export interface GrpcChannel {
  unary<Request, Response>(method: Method<Request, Response>, request: Request, bounds: CallBounds): Promise<Response>;
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    bounds: CallBounds,
  ): AsyncIterable<Response>;
  /** Ends what is still under way; until then an open connection keeps the process alive. */
  close(): void;
}

export function openChannel(path: string, headers: Readonly<Record<string, string>> = {}): GrpcChannel {
  /** More than one only while a connection that the server is ending has calls to finish. */
  const sessions = new Set<ClientHttp2Session>();

  function currentSession(): ClientHttp2Session {
    for (const session of sessions) {
      if (!session.closed && !session.destroyed) return session;
    }
    const fresh = openSession(path);
    sessions.add(fresh);
    fresh.once("close", () => sessions.delete(fresh));
    return fresh;
  }

  function start<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    bounds: CallBounds,
  ): RunningCall {
    const callHeaders = {
      ":method": "POST",
      ":path": method.path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    };
    return startCall(currentSession(), callHeaders, frame(method.encode(request)), bounds);
  }

  return {
    unary: async (method, request, bounds) => {
      const { stream, ended, giveUp } = start(method, request, bounds);
      const reader = new MessageReader();
      const messages: Uint8Array[] = [];
      stream.on("data", (chunk: Uint8Array) => {
        try {
          messages.push(...reader.push(chunk));
        } catch (error) {
          giveUp(error);
        }
      });
      await ended;
      reader.end();
      const [message] = messages;
      if (message === undefined) throw new GrpcError(GrpcStatus.internal, "the answer holds no message");
      return decoded(method, message);
    },
    stream: async function* (method, request, bounds) {
      const { stream, ended } = start(method, request, bounds);
      const reader = new MessageReader();
      try {
        for await (const chunk of stream) {
          for (const message of reader.push(chunk as Uint8Array)) yield decoded(method, message);
        }
      } catch (error) {
        // What the stream throws only tells that it ended, and `ended` tells why.
        if (!(error instanceof GrpcError)) await ended;
        throw error;
      }
      await ended;
      reader.end();
    },
    close: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** The host part is never looked up: the connection goes to the socket. Go servers want a plain name here. */
const AUTHORITY = "http://localhost";

/** HTTP/2's default of 64 KiB would stop a long list for a round trip at every step. */
const WINDOW_BYTES = 4 * 1024 * 1024;

function openSession(path: string): ClientHttp2Session {
  const session = connect(AUTHORITY, {
    createConnection: () => connectSocket(path),
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  });
  // Every call in flight learns of it by its own stream, and an idle connection that breaks concerns nobody.
  session.on("error", () => undefined);
  session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
  return session;
}

function decoded<Response>(method: Method<never, Response>, bytes: Uint8Array): Response {
  try {
    return method.decode(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new GrpcError(GrpcStatus.internal, `the answer to ${method.path} cannot be read: ${why}`);
  }
}
