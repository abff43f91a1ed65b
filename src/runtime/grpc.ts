import { type ClientHttp2Stream, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { connect as connectSocket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { errorCode } from "../host/source.ts";
import { AnswerLimitError, GrpcError, GrpcStatus, type RuntimeError, toRuntimeError } from "./errors.ts";

/** Every call has a timeout. */
export interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** The limit of one answer, or of all answers of one channel. */
interface AnswerLimits {
  readonly bytes: number;
  readonly messages: number;
  /** Nested messages, of which each becomes an object: two bytes may take three hundred. */
  readonly objects: number;
}

/** A stream whose messages are not kept may have no other limit than its timeout. */
export interface LimitedOptions extends CallOptions {
  readonly limits?: AnswerLimits;
}

/** One remote procedure: its path, and the codecs of its messages. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly encode: (request: Request) => Uint8Array;
  readonly decode: (bytes: Uint8Array, onObject?: OnObject) => Response;
}

/** Called for each message within a message; throws when there are too many. */
export type OnObject = () => void;

/**
 * gRPC over a unix socket: unary calls and server streams. One HTTP/2 connection, opened by the first call and opened
 * again by the first call after it broke. Calls throw RuntimeError and nothing else.
 */
export type GrpcChannel = ReturnType<typeof openChannel>;

/** containerd sends messages of at most 16 MiB by default; CRI-O and tuned nodes send more. */
export const MAX_MESSAGE_BYTES = 32 * 1024 * 1024;

/** One byte for the compression flag, four for the length. */
const FRAME_HEADER_BYTES = 5;

/** A sandbox with its labels has some 18 objects in 600 bytes: this is more than 16 MiB of them. */
const MAX_OBJECTS = 400_000;
const ONE_MESSAGE: AnswerLimits = { bytes: MAX_MESSAGE_BYTES + 1024, messages: 1, objects: MAX_OBJECTS };

/** Tasks and leases are two or three small objects each. */
export const SMALL_LIST: AnswerLimits = { bytes: 8 * 1024 * 1024, messages: 1, objects: 100_000 };

/** A record is some 10 KB with its OCI spec, of which little is kept: this allows ten thousand of them. */
const LIST_STREAM: AnswerLimits = { bytes: 128 * 1024 * 1024, messages: 50_000, objects: 750_000 };

/** Event streams have no end, and are not kept: only each message has limits. */
export const ENDLESS: AnswerLimits = {
  bytes: Number.POSITIVE_INFINITY,
  messages: Number.POSITIVE_INFINITY,
  objects: Number.POSITIVE_INFINITY,
};

/** All answers of one scan together. A list that is read in parts counts several times. */
export const BYTES_PER_SCAN = 256 * 1024 * 1024;
const OBJECTS_PER_SCAN = 3_000_000;

/** Servers fill frames. Each costs far more than a byte until it is read. */
const SMALL_BYTES = 64;
/** The first ones may be small. */
const SMALL_CHUNKS = 10_000;

/** Of one list: far above any node. */
const MAX_ITEMS = 50_000;

/** With HTTP/2's default of 64 KiB a long list would wait for a round trip after each window. */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** Error texts are sent in headers. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Node counts what is received and not yet read, in MB; its default of 10 is less than one message. */
const MAX_SESSION_MB = 256;

/** `maxBytes` is the limit of all answers together, for a channel that is closed after one scan. */
export function openChannel(path: string, { maxBytes = Number.POSITIVE_INFINITY } = {}) {
  const isBounded = Number.isFinite(maxBytes);
  const all = { ...ENDLESS, bytes: maxBytes, objects: isBounded ? OBJECTS_PER_SCAN : Number.POSITIVE_INFINITY };
  const received = new AnswerMeter("what the runtime answered to one scan", all);
  /** More than one only while the server closes an old connection. */
  const connections = new Set<Connection>();

  function currentConnection(): Connection {
    for (const connection of connections) {
      if (!connection.session.closed && !connection.session.destroyed) return connection;
    }
    const fresh = openConnection(path);
    connections.add(fresh);
    fresh.session.once("close", () => connections.delete(fresh));
    return fresh;
  }

  /** One answer: counted, split into messages, and the call named in its errors. */
  function answerTo(rpc: Method<never, unknown>, { timeoutMs }: CallOptions, limits: AnswerLimits) {
    const startedAt = performance.now();
    const reader = new MessageReader();
    const meter = new AnswerMeter("the answer", limits);
    return {
      push: (chunk: Uint8Array): readonly Uint8Array[] => {
        meter.addChunk(chunk);
        received.addBytes(chunk.length);
        const messages = reader.push(chunk);
        meter.addMessages(messages.length);
        return messages;
      },
      end: () => reader.end(),
      onObject: () => {
        meter.addObject();
        received.addObject();
      },
      toError: (error: unknown): RuntimeError => {
        const timedOut = performance.now() - startedAt >= timeoutMs - CLOCK_SLACK_MS;
        return toRuntimeError(error, { call: nameOf(rpc), socketPath: path, timedOut });
      },
    };
  }

  async function* stream<Request, Response>(
    rpc: Method<Request, Response>,
    request: Request,
    options: LimitedOptions,
  ): AsyncGenerator<Response, void> {
    const answer = answerTo(rpc, options, options.limits ?? LIST_STREAM);
    try {
      const call = await startCall(currentConnection, rpc, request, options);
      try {
        for await (const chunk of chunksOf(call.stream)) {
          for (const message of answer.push(chunk)) yield decoded(rpc, message, answer.onObject);
        }
        await call.ended;
      } finally {
        call.close();
      }
      answer.end();
    } catch (error) {
      throw answer.toError(error);
    }
  }

  /** By events: the iterator of a stream costs twice as much CPU time as the rest of a call. */
  async function unary<Request, Response>(
    rpc: Method<Request, Response>,
    request: Request,
    options: LimitedOptions,
  ): Promise<Response> {
    const answer = answerTo(rpc, options, options.limits ?? ONE_MESSAGE);
    let message: Uint8Array | undefined;
    try {
      const call = await startCall(currentConnection, rpc, request, options);
      call.stream.on("data", (chunk: Uint8Array) => {
        try {
          message = answer.push(chunk)[0] ?? message;
        } catch (error) {
          call.giveUp(error);
        }
      });
      await call.ended.finally(() => call.close());
      answer.end();
      if (message === undefined) throw new GrpcError(GrpcStatus.internal, "the answer holds no message");
      return decoded(rpc, message, answer.onObject);
    } catch (error) {
      throw answer.toError(error);
    }
  }

  return {
    stream,
    unary,
    /** Resolves when all requests until now were sent, or failed. */
    sent: async () => {
      await Promise.allSettled([...connections].map(({ ready }) => ready));
      await nextTurn();
    },
    /** Aborts calls in flight; an open connection keeps the process alive until then. */
    close: () => {
      for (const { session, socket } of connections) {
        session.destroy();
        // A session that the server asked to end waits for the server's end of it.
        socket.destroy();
      }
    },
  };
}

/** Timers fire up to a millisecond early, and the server's clock may be ahead of ours by as much. */
const CLOCK_SLACK_MS = 5;

function nameOf({ path }: Pick<Method<never, unknown>, "path">): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

type Connection = ReturnType<typeof openConnection>;

function openConnection(path: string) {
  const socket = connectSocket(path);
  const session = connect("http://localhost", {
    createConnection: () => socket,
    settings: { enablePush: false, initialWindowSize: WINDOW_BYTES, maxHeaderListSize: MAX_HEADER_BYTES },
    maxSessionMemory: MAX_SESSION_MB,
  });
  /**
   * Resolves with the server's settings: requests that are sent earlier may exceed its limit of concurrent ones. Rejects
   * with the platform's error if there is no HTTP/2 server behind the socket.
   */
  const ready = new Promise<void>((resolve, reject) => {
    session.once("remoteSettings", () => {
      // Not earlier: Bun 1.4 may miss the end of a connection that the server closes while we write to it.
      session.setLocalWindowSize(WINDOW_BYTES);
      resolve();
    });
    session.on("error", reject);
    session.once("close", () => reject(lost()));
    // There, such a connection may have an end and no close.
    socket.once("end", () => {
      session.destroy();
      reject(lost());
    });
  });
  // The calls that wait for it report it.
  ready.catch(() => undefined);
  return { session, socket, ready };
}

/** Sends the request of a call. */
async function startCall<Request>(
  connectionFor: () => Connection,
  { path, headers, encode }: Method<Request, unknown>,
  request: Request,
  { timeoutMs, signal }: CallOptions,
) {
  if (signal?.aborted === true) throw abortError(signal.reason);
  const { session, ready } = connectionFor();
  const givenUp = Promise.withResolvers<never>();
  givenUp.promise.catch(() => undefined);
  let stream: ClientHttp2Stream | undefined;
  function giveUp(reason: unknown): void {
    givenUp.reject(reason);
    cancel(stream);
  }
  const onAbort = (): void => giveUp(abortError(signal?.reason));
  const onTimeout = (): void => giveUp(new GrpcError(GrpcStatus.deadlineExceeded, ""));
  signal?.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(onTimeout, Math.min(timeoutMs, LONGEST_TIMER_MS));
  function close(): void {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    cancel(stream);
  }
  try {
    await Promise.race([ready, givenUp.promise]);
    if (session.closed || session.destroyed) throw lost();
    stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
      "grpc-timeout": timeoutHeader(timeoutMs),
    });
    /** Resolves when the server returned OK and its answer was read; rejects with its error, or why there is none. */
    const ended = Promise.race([givenUp.promise, resultOf(stream)]);
    // A reader that leaves before the end does not await it.
    ended.catch(() => undefined);
    stream.end(frame(encode(request)));
    return { stream, ended, giveUp, close };
  } catch (error) {
    close();
    throw error;
  }
}

/** What is received until the stream ends, in any way: `ended` has the reason. */
async function* chunksOf(stream: ClientHttp2Stream): AsyncGenerator<Uint8Array, void> {
  try {
    yield* stream.iterator({ destroyOnReturn: false });
  } catch {
    // Cancelled or broken.
  }
}

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Also drops what was received and not read. No effect on a stream that has ended. */
function cancel(stream: ClientHttp2Stream | undefined): void {
  if (stream === undefined || stream.destroyed) return;
  stream.close(constants.NGHTTP2_CANCEL);
  stream.destroy();
}

/** Resolves when the server has returned OK and its whole answer was read. */
function resultOf(stream: ClientHttp2Stream): Promise<void> {
  let status: ReturnType<typeof statusIn>;
  let failure: Error | undefined;
  let isReadToItsEnd = false;
  stream.once("response", (headers) => {
    status = statusIn(headers);
  });
  stream.once("trailers", (headers) => {
    status ??= statusIn(headers);
  });
  stream.once("end", () => {
    isReadToItsEnd = true;
  });
  stream.on("error", (error: Error) => {
    failure = error;
  });
  return new Promise<void>((resolve, reject) => {
    stream.once("close", () => {
      if (status instanceof GrpcError) reject(status);
      // A connection that breaks after the status takes with it what was not read yet.
      else if (status === "ok" && isReadToItsEnd) resolve();
      else reject(failureOf(failure));
    });
  });
}

/** The error for a stream that ended without a status. */
function failureOf(error: Error | undefined): Error {
  const code = errorCode(error);
  const isServersFault = code === "ERR_HTTP2_STREAM_ERROR" || code === "ERR_HTTP2_ERROR";
  return error !== undefined && isServersFault ? error : lost(error);
}

function lost(cause?: Error): GrpcError {
  return new GrpcError(GrpcStatus.unavailable, "", { cause });
}

/** A signal that is a timer counts as a timeout. */
function abortError(reason: unknown): GrpcError {
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return new GrpcError(timedOut ? GrpcStatus.deadlineExceeded : GrpcStatus.cancelled, "");
}

/** The status in headers or trailers; undefined when they have none. */
function statusIn(headers: IncomingHttpHeaders): "ok" | GrpcError | undefined {
  const status = headers["grpc-status"];
  if (status !== undefined) {
    if (Number(status) === GrpcStatus.ok) return "ok";
    return new GrpcError(Number(status), percentDecoded(String(headers["grpc-message"] ?? "")));
  }
  const http = headers[":status"];
  if (http === undefined || Number(http) === 200) return undefined;
  return new GrpcError(GrpcStatus.unavailable, `HTTP status ${String(http)}`);
}

/** grpc-message is percent-encoded UTF-8; the text is kept even if the encoding is invalid. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The gRPC specification allows at most eight digits. */
const MAX_IN_HEADER = 99_999_999;

function timeoutHeader(timeoutMs: number): string {
  const ms = Math.max(1, Math.ceil(timeoutMs));
  return ms <= MAX_IN_HEADER ? `${ms}m` : `${Math.min(Math.ceil(ms / 1000), MAX_IN_HEADER)}S`;
}

/** Counts what is received; throws as soon as the limit is exceeded. */
class AnswerMeter {
  readonly #what: string;
  readonly #limits: AnswerLimits;
  #bytes = 0;
  #chunks = 0;
  #messages = 0;
  #objects = 0;

  constructor(what: string, limits: AnswerLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#limits.bytes) this.#refuse(`${this.#limits.bytes} bytes`);
  }

  addChunk({ length }: Uint8Array): void {
    this.addBytes(length);
    this.#chunks += 1;
    const isTiny = this.#chunks > SMALL_CHUNKS + this.#bytes / SMALL_BYTES;
    if (isTiny && Number.isFinite(this.#limits.bytes)) this.#refuse(`${this.#chunks} pieces of a few bytes`);
  }

  addMessages(count: number): void {
    this.#messages += count;
    if (this.#messages > this.#limits.messages) this.#refuse(`${this.#limits.messages} messages`);
  }

  addObject(): void {
    this.#objects += 1;
    if (this.#objects > this.#limits.objects) this.#refuse(`${this.#limits.objects} objects`);
  }

  #refuse(limit: string): never {
    throw new AnswerLimitError(`${this.#what} did not end after ${limit}`);
  }
}

export function frame(message: Uint8Array): Uint8Array {
  const framed = new Uint8Array(FRAME_HEADER_BYTES + message.length);
  new DataView(framed.buffer).setUint32(1, message.length);
  framed.set(message, FRAME_HEADER_BYTES);
  return framed;
}

/** Splits a byte stream into messages, independent of chunk boundaries. Chunks are copied, because one may be a byte. */
export class MessageReader {
  readonly #header = Buffer.alloc(FRAME_HEADER_BYTES);
  #message: Buffer | undefined;
  /** Of the header or the message, whichever is being read. */
  #received = 0;

  /** Accepts the next bytes and returns the messages that they complete. */
  push(chunk: Uint8Array): Uint8Array[] {
    const messages: Uint8Array[] = [];
    for (let from = 0; from < chunk.length; ) {
      const into = this.#message ?? this.#header;
      const part = chunk.subarray(from, from + into.length - this.#received);
      into.set(part, this.#received);
      this.#received += part.length;
      from += part.length;
      if (this.#received < into.length) break;
      this.#received = 0;
      if (this.#message !== undefined) messages.push(this.#message);
      const length = this.#message === undefined ? this.#announcedLength() : undefined;
      this.#message = length === undefined || length === 0 ? undefined : Buffer.allocUnsafeSlow(length);
      if (length === 0) messages.push(new Uint8Array());
    }
    return messages;
  }

  /** Throws when the bytes end within a message. */
  end(): void {
    if (this.#received > 0 || this.#message !== undefined) {
      throw new GrpcError(GrpcStatus.internal, "the answer ends in the middle of a message");
    }
  }

  #announcedLength(): number {
    if (this.#header[0] !== 0) {
      throw new GrpcError(GrpcStatus.internal, "the answer is compressed, which was not asked for");
    }
    const length = this.#header.readUInt32BE(1);
    if (length > MAX_MESSAGE_BYTES) {
      throw new GrpcError(
        GrpcStatus.resourceExhausted,
        `received message larger than max (${length} vs. ${MAX_MESSAGE_BYTES})`,
      );
    }
    return length;
  }
}

/** What ts-proto generates for one message type. */
interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(reader: TextReader): Message;
  fromPartial(partial: object): Message;
}

/** What ts-proto generates for one service. */
interface Service {
  readonly fullName: string;
  readonly methods: Readonly<
    Record<string, { readonly name: string; readonly requestType: Codec<object>; readonly responseType: Codec<object> }>
  >;
}

type MethodsOf<Methods extends Service["methods"]> = {
  readonly [Name in keyof Methods]: Method<
    Parameters<Methods[Name]["requestType"]["fromPartial"]>[0],
    ReturnType<Methods[Name]["responseType"]["decode"]>
  >;
};

/** A service's methods by name. Requests are partial: missing fields have their default. */
export function methodsOf<Of extends Service>(
  { fullName, methods }: Of,
  headers: Readonly<Record<string, string>> = {},
): MethodsOf<Of["methods"]> {
  const entries = Object.entries(methods).map(
    ([key, { name, requestType, responseType }]): [string, Method<object, object>] => [
      key,
      {
        path: `/${fullName}/${name}`,
        headers,
        encode: (partial) => requestType.encode(requestType.fromPartial(partial)).finish(),
        decode: (bytes, onObject) => responseType.decode(new TextReader(bytes, onObject)),
      },
    ],
  );
  return Object.fromEntries(entries) as MethodsOf<Of["methods"]>;
}

/** For calls whose answers have no content. */
export async function done(call: Promise<unknown>): Promise<void> {
  await call;
}

function decoded<Response>(to: Method<never, Response>, bytes: Uint8Array, onObject: OnObject): Response {
  let objects = 0;
  const onNext = (): void => {
    objects += 1;
    if (objects > MAX_OBJECTS) throw new AnswerLimitError(`the answer did not end after ${MAX_OBJECTS} objects`);
    onObject();
  };
  try {
    const response = to.decode(bytes, onNext);
    if (
      [response, ...Object.values(response as object)].some((list) => Array.isArray(list) && list.length > MAX_ITEMS)
    ) {
      throw new AnswerLimitError(`the answer did not end after ${MAX_ITEMS} items`);
    }
    return response;
  } catch (error) {
    if (error instanceof AnswerLimitError) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw new GrpcError(GrpcStatus.internal, `the answer to ${to.path} cannot be read: ${why}`);
  }
}

/**
 * Decodes strings with the engine's decoder: the library decodes byte by byte, which takes twice as long when
 * interpreted. Reports each message within the message.
 */
export class TextReader extends BinaryReader {
  readonly #text: Buffer;
  readonly #onObject: OnObject;
  #depth = 0;

  constructor(bytes: Uint8Array, onObject: OnObject = () => undefined) {
    super(bytes);
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#onObject = onObject;
  }

  /** The generated code keeps its depth here, and deepens it at the start of each message. */
  get __tsProtoDecodeDepth(): number {
    return this.#depth;
  }

  set __tsProtoDecodeDepth(depth: number) {
    if (depth > this.#depth) this.#onObject();
    this.#depth = depth;
  }

  override string(): string {
    const { length } = this.bytes();
    return this.#text.toString("utf8", this.pos - length, this.pos);
  }
}
