import { type AnswerLimits, AnswerMeter, LIST_STREAM, ONE_MESSAGE } from "./answer-limits.ts";
import { abortError, Call, type CallBounds, type StreamBounds } from "./grpc-call.ts";
import { frame, MessageReader } from "./grpc-frames.ts";
import { GrpcError, GrpcStatus } from "./grpc-status.ts";
import { Connection } from "./http2/connection.ts";
import { encodeHeaders } from "./http2/hpack-encode.ts";

/** One remote procedure: its path, and the codecs of its messages. */
export interface Method<Request, Response> extends MethodHead {
  readonly encode: (request: Request) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => Response;
}

/**
 * gRPC over a unix socket: unary calls and server streams. One HTTP/2 connection, opened by the first call and opened
 * again by the first call after it broke.
 */
export interface GrpcChannel {
  unary<Request, Response>(method: Method<Request, Response>, request: Request, bounds: CallBounds): Promise<Response>;
  stream<Request, Response>(
    method: Method<Request, Response>,
    request: Request,
    bounds: StreamBounds,
  ): AsyncIterable<Response>;
  /** Resolves when all requests until now were sent, or failed. */
  sent(): Promise<void>;
  /** Aborts calls in flight; an open connection keeps the process alive until then. */
  close(): void;
}

interface ChannelOptions {
  /** The limit of all answers together, for a connection that is closed after one scan. */
  readonly maxBytes?: number;
}

export function openChannel(path: string, { maxBytes = Number.POSITIVE_INFINITY }: ChannelOptions = {}): GrpcChannel {
  const received = new AnswerMeter("what the runtime answered to one scan", {
    bytes: maxBytes,
    messages: Number.POSITIVE_INFINITY,
  });
  /** More than one only while the server closes an old connection. */
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
    limits: AnswerLimits,
  ): MeteredCall {
    if (bounds.signal?.aborted === true) throw abortError(bounds.signal.reason);
    const message = frame(method.encode(request));
    const meter = new AnswerMeter("the answer", limits);
    const metered = (bytes: Uint8Array): void => {
      meter.addBytes(bytes.length);
      received.addBytes(bytes.length);
      onBytes(bytes);
    };
    const call = new Call(currentConnection(), headerBlock(method, bounds.timeoutMs), message, bounds, metered);
    return { call, meter };
  }

  return {
    unary: async (method, request, bounds) => {
      const reader = new MessageReader();
      let answer: Uint8Array | undefined;
      const onBytes = (bytes: Uint8Array): void => {
        const messages = reader.push(bytes);
        meter.addMessages(messages.length);
        answer ??= messages[0];
        call.consumed(bytes.length);
      };
      const { call, meter } = start(method, request, bounds, onBytes, ONE_MESSAGE);
      await call.ended;
      reader.end();
      if (answer === undefined) throw new GrpcError(GrpcStatus.internal, "the answer holds no message");
      return decoded(method, answer);
    },
    stream: async function* (method, request, bounds) {
      const reader = new MessageReader();
      const arrivals = new Arrivals();
      const onBytes = (bytes: Uint8Array): void => arrivals.push(bytes);
      const { call, meter } = start(method, request, bounds, onBytes, bounds.limits ?? LIST_STREAM);
      const noMore = (): void => arrivals.end();
      call.ended.then(noMore, noMore);
      try {
        for (let chunks = await arrivals.take(); chunks.length > 0; chunks = await arrivals.take()) {
          for (const chunk of chunks) {
            const messages = reader.push(chunk);
            meter.addMessages(messages.length);
            for (const message of messages) yield decoded(method, message);
            call.consumed(chunk.length);
          }
        }
        await call.ended;
        reader.end();
      } finally {
        // No effect if the call has already ended.
        call.giveUp(new GrpcError(GrpcStatus.cancelled, ""));
      }
    },
    sent: async () => {
      await Promise.all([...connections].map(({ settings }) => settings));
    },
    close: () => {
      for (const connection of connections) connection.close();
    },
  };
}

/** A call with the size of its answer so far. */
interface MeteredCall {
  readonly call: Call;
  readonly meter: AnswerMeter;
}

function decoded<Response>(method: Method<never, Response>, bytes: Uint8Array): Response {
  try {
    return method.decode(bytes);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new GrpcError(GrpcStatus.internal, `the answer to ${method.path} cannot be read: ${why}`);
  }
}

/** Received bytes that the reader has not taken yet. */
class Arrivals {
  #chunks: Uint8Array[] = [];
  #over = false;
  #wake: () => void = () => undefined;

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  /** Waits for data and returns all of it; returns nothing at the end. */
  async take(): Promise<readonly Uint8Array[]> {
    if (this.#chunks.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }
}

/** The part of a method that becomes headers. */
interface MethodHead {
  readonly path: string;
  /** Additional headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Cache of encoded headers per method and timeout: most calls repeat them. */
const remembered = new WeakMap<MethodHead, Map<number, Uint8Array>>();
const MAX_REMEMBERED = 8;

function headerBlock(method: MethodHead, timeoutMs: number): Uint8Array {
  const ofMethod = remembered.get(method) ?? new Map<number, Uint8Array>();
  remembered.set(method, ofMethod);
  const known = ofMethod.get(timeoutMs);
  if (known !== undefined) return known;
  const block = encodeHeaders([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", method.path],
    // Not resolved, because the connection goes to the socket. Go servers require a plain name here.
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...Object.entries(method.headers ?? {}),
    ["grpc-timeout", timeoutHeader(timeoutMs)],
  ]);
  if (ofMethod.size === MAX_REMEMBERED) ofMethod.clear();
  ofMethod.set(timeoutMs, block);
  return block;
}

/** The gRPC specification allows at most eight digits. */
const MAX_IN_HEADER = 99_999_999;

function timeoutHeader(timeoutMs: number): string {
  const ms = Math.max(1, Math.ceil(timeoutMs));
  return ms <= MAX_IN_HEADER ? `${ms}m` : `${Math.min(Math.ceil(ms / 1000), MAX_IN_HEADER)}S`;
}
