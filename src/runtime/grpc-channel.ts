import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { connect as connectSocket } from "node:net";
import { frame, MessageReader } from "./grpc-frames.ts";
import { GrpcError, GrpcStatus, statusOf } from "./grpc-status.ts";

/** One remote procedure: where it is, and how its messages are written and read. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly encode: (request: Request) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Response;
}

export interface ChannelCall {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * gRPC over a unix socket: unary calls and server streams, which is all that the runtimes' APIs need. One HTTP/2
 * connection, opened by the first call and opened anew by the first call after it broke.
 */
export interface GrpcChannel {
  unary<Request, Response>(method: Method<Request, Response>, request: Request, call: ChannelCall): Promise<Response>;
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    call: ChannelCall,
  ): AsyncIterable<Response>;
  close(): void;
}

/** The host part is never looked up: the connection goes to the socket. Go servers want a plain name here. */
const AUTHORITY = "http://localhost";

/** HTTP/2's default of 64 KiB would stop a long list for a round trip at every step. */
const WINDOW_BYTES = 4 * 1024 * 1024;

export function openChannel(path: string, headers: Readonly<Record<string, string>> = {}): GrpcChannel {
  let connection: Connection | undefined;

  function currentConnection(): Connection {
    if (connection !== undefined && !connection.session.closed && !connection.session.destroyed) return connection;
    const fresh = openConnection(path, () => {
      if (connection === fresh) connection = undefined;
    });
    connection = fresh;
    return fresh;
  }

  async function* exchange<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    call: ChannelCall,
  ): AsyncGenerator<Response, void, undefined> {
    const bounded = boundedBy(call);
    const { session, broken } = currentConnection();
    try {
      bounded.signal.throwIfAborted();
      const stream = session.request({
        ":method": "POST",
        ":path": method.path,
        "content-type": "application/grpc",
        te: "trailers",
        "grpc-timeout": `${Math.max(1, Math.ceil(call.timeoutMs))}m`,
        ...headers,
      });
      const cancel = (): void => stream.close(constants.NGHTTP2_CANCEL);
      bounded.signal.addEventListener("abort", cancel, { once: true });
      try {
        stream.end(frame(method.encode(request)));
        yield* messages(stream, broken, method.decode);
      } finally {
        bounded.signal.removeEventListener("abort", cancel);
        if (!stream.closed) cancel();
      }
    } catch (error) {
      throw bounded.reason() ?? error;
    } finally {
      bounded.release();
    }
  }

  return {
    unary: async (method, request, call) => {
      let answer: { readonly message: ReturnType<typeof method.decode> } | undefined;
      for await (const message of exchange(method, request, call)) answer ??= { message };
      if (answer === undefined) throw new GrpcError(GrpcStatus.internal, "the answer holds no message");
      return answer.message;
    },
    stream: exchange,
    close: () => connection?.session.destroy(),
  };
}

interface Connection {
  readonly session: ClientHttp2Session;
  /** Rejects with what broke the connection; calls in flight wait for it beside their own stream. */
  readonly broken: Promise<never>;
}

function openConnection(path: string, onEnd: () => void): Connection {
  const session = connect(AUTHORITY, {
    createConnection: () => connectSocket(path),
    settings: { initialWindowSize: WINDOW_BYTES, enablePush: false },
  });
  const broken = new Promise<never>((_, reject) => session.on("error", reject));
  // An idle connection may break, too, and then nobody waits for it.
  broken.catch(onEnd);
  session.on("goaway", onEnd);
  session.on("close", onEnd);
  session.once("connect", () => session.setLocalWindowSize(WINDOW_BYTES));
  return { session, broken };
}

/** Reads messages until the server says how it ended. */
async function* messages<Response>(
  stream: ClientHttp2Stream,
  broken: Promise<never>,
  decode: (bytes: Uint8Array) => Response,
): AsyncGenerator<Response, void, undefined> {
  const ended = statusOf(stream);
  // Awaited below, after the last message; until then a failure must not count as unhandled.
  ended.catch(() => undefined);
  const reader = new MessageReader();
  const chunks = stream[Symbol.asyncIterator]();
  while (true) {
    const chunk = await Promise.race([chunks.next(), broken]);
    if (chunk.done === true) break;
    for (const bytes of reader.push(chunk.value as Uint8Array)) yield decode(bytes);
  }
  await Promise.race([ended, broken]);
}

interface Bounded {
  readonly signal: AbortSignal;
  /** Why it was given up, in gRPC's terms; undefined while it was not. */
  reason(): GrpcError | undefined;
  release(): void;
}

/** A timer that does not keep the process alive, and the caller's own signal, in one. */
function boundedBy({ timeoutMs, signal }: ChannelCall): Bounded {
  const controller = new AbortController();
  let reason: GrpcError | undefined;
  const giveUp = (error: GrpcError): void => {
    reason ??= error;
    controller.abort(error);
  };
  const timer = setTimeout(() => giveUp(new GrpcError(GrpcStatus.deadlineExceeded, "")), timeoutMs);
  const onAbort = (): void => {
    const timedOut = signal?.reason instanceof Error && signal.reason.name === "TimeoutError";
    giveUp(new GrpcError(timedOut ? GrpcStatus.deadlineExceeded : GrpcStatus.cancelled, ""));
  };
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    reason: () => reason,
    release: () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    },
  };
}
