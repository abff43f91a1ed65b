import { type ClientHttp2Session, connect } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";
import { abortError, type CallBounds, type RunningCall, startCall } from "./grpc-call.ts";
import { frame, MessageReader } from "./grpc-frames.ts";
import { GrpcError, GrpcStatus } from "./grpc-status.ts";

/** One remote procedure: where it is, and how its messages are written and read. */
export interface Method<Request, Response> {
  readonly path: string;
  /** Beside those of every call. */
  readonly headers?: Readonly<Record<string, string>>;
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

export function openChannel(path: string): GrpcChannel {
  /** More than one only while the server ends a connection and takes its time for that. */
  const connections = new Set<Connection>();

  function currentSession(): ClientHttp2Session {
    for (const { session } of connections) {
      if (!session.closed && !session.destroyed) return session;
    }
    const fresh = openConnection(path);
    connections.add(fresh);
    fresh.socket.once("close", () => connections.delete(fresh));
    return fresh.session;
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
      ...method.headers,
    };
    if (bounds.signal?.aborted === true) throw abortError(bounds.signal.reason);
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
      for (const { session, socket } of connections) {
        session.destroy();
        // Without this a session that is closing already would wait for the server to hang up.
        socket.destroy();
      }
    },
  };
}

/** The host part is never looked up: the connection goes to the socket. Go servers want a plain name here. */
const AUTHORITY = "http://localhost";

/** HTTP/2's default of 64 KiB would stop a long list for a round trip at every step. */
const WINDOW_BYTES = 4 * 1024 * 1024;

interface Connection {
  readonly session: ClientHttp2Session;
  readonly socket: Socket;
}

function openConnection(path: string): Connection {
  const socket = connectSocket(path);
  const session = connect(AUTHORITY, {
    createConnection: () => socket,
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  });
  // Every call in flight learns of it by its own stream, and an idle connection that breaks concerns nobody.
  session.on("error", () => undefined);
  session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
  return { session, socket };
}

function decoded<Response>(method: Method<never, Response>, bytes: Uint8Array): Response {
  try {
    return method.decode(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new GrpcError(GrpcStatus.internal, `the answer to ${method.path} cannot be read: ${why}`);
  }
}
