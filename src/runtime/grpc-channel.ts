import { Arrivals } from "./grpc-arrivals.ts";
import { abortError, Call, type CallBounds } from "./grpc-call.ts";
import { frame, MessageReader } from "./grpc-frames.ts";
import { headerBlock, type MethodHead } from "./grpc-headers.ts";
import { GrpcError, GrpcStatus } from "./grpc-status.ts";
import { Connection } from "./http2/connection.ts";

/** One remote procedure: where it is, and how its messages are written and read. */
export interface Method<Request, Response> extends MethodHead {
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
  /** Resolves when what was asked until now is on its way, or never will be. */
  sent(): Promise<void>;
  /** Ends what is still under way; until then an open connection keeps the process alive. */
  close(): void;
}

export function openChannel(path: string): GrpcChannel {
  /** More than one only while the server ends a connection and takes its time for that. */
  const connections = new Set<Connection>();

  function currentConnection(): Connection {
    for (const connection of connections) {
      if (connection.takesRequests) return connection;
    }
    const fresh = new Connection(path, { onClosed: () => connections.delete(fresh) });
    connections.add(fresh);
    return fresh;
  }

  function start<Request>(
    method: Method<Request, unknown>,
    request: Request,
    bounds: CallBounds,
    onBytes: (bytes: Uint8Array) => void,
  ): Call {
    if (bounds.signal?.aborted === true) throw abortError(bounds.signal.reason);
    const message = frame(method.encode(request));
    return new Call(currentConnection(), headerBlock(method, bounds.timeoutMs), message, bounds, onBytes);
  }

  return {
    unary: async (method, request, bounds) => {
      const reader = new MessageReader();
      let answer: Uint8Array | undefined;
      const call = start(method, request, bounds, (bytes) => {
        const [message] = reader.push(bytes);
        answer ??= message;
        call.consumed(bytes.length);
      });
      await call.ended;
      reader.end();
      if (answer === undefined) throw new GrpcError(GrpcStatus.internal, "the answer holds no message");
      return decoded(method, answer);
    },
    stream: async function* (method, request, bounds) {
      const reader = new MessageReader();
      const arrivals = new Arrivals();
      const call = start(method, request, bounds, (bytes) => arrivals.push(bytes));
      const noMore = (): void => arrivals.end();
      call.ended.then(noMore, noMore);
      try {
        for (let chunks = await arrivals.take(); chunks.length > 0; chunks = await arrivals.take()) {
          for (const chunk of chunks) {
            for (const message of reader.push(chunk)) yield decoded(method, message);
            call.consumed(chunk.length);
          }
        }
        await call.ended;
        reader.end();
      } finally {
        // Without effect where the call has ended by itself.
        call.giveUp(new GrpcError(GrpcStatus.cancelled, ""));
      }
    },
    sent: async () => {
      await Promise.all([...connections].map(({ begun }) => begun));
    },
    close: () => {
      for (const connection of connections) connection.close();
    },
  };
}

function decoded<Response>(method: Method<never, Response>, bytes: Uint8Array): Response {
  try {
    return method.decode(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new GrpcError(GrpcStatus.internal, `the answer to ${method.path} cannot be read: ${why}`);
  }
}
