import { BinaryReader } from "@bufbuild/protobuf/wire";
import { toRuntimeError } from "./errors.ts";
import type { CallBounds, StreamBounds } from "./grpc-call.ts";
import type { GrpcChannel, Method } from "./grpc-channel.ts";

/** Every call to the runtime has a timeout. */
export type CallOptions = CallBounds;

/** What ts-proto generates for one message type. */
interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(reader: TextReader): Message;
  fromPartial(partial: object): Message;
}

/** A service's method by name. Requests are partial: missing fields have their default. */
export function method<Request, Response>(
  service: string,
  name: string,
  request: Codec<Request>,
  response: Codec<Response>,
  headers: Readonly<Record<string, string>> = {},
) {
  const wire: Method<object, Response> = {
    path: `/${service}/${name}`,
    headers,
    encode: (partial) => request.encode(request.fromPartial(partial)).finish(),
    decode: (bytes) => response.decode(new TextReader(bytes)),
  };
  return { name, wire };
}

/** Runs one unary call and converts its failure into a RuntimeError. */
export async function callUnary<Response>(
  channel: GrpcChannel,
  socketPath: string,
  { name, wire }: { readonly name: string; readonly wire: Method<object, Response> },
  request: object,
  options: CallOptions,
): Promise<Response> {
  const startedAt = performance.now();
  try {
    return await channel.unary(wire, request, options);
  } catch (error) {
    throw toRuntimeError(error, { call: name, socketPath, timedOut: timedOut(startedAt, options) });
  }
}

/** The same for a server stream. */
export async function* callStream<Response>(
  channel: GrpcChannel,
  socketPath: string,
  { name, wire }: { readonly name: string; readonly wire: Method<object, Response> },
  request: object,
  options: StreamBounds,
): AsyncIterable<Response> {
  const startedAt = performance.now();
  try {
    yield* channel.stream(wire, request, options);
  } catch (error) {
    throw toRuntimeError(error, { call: name, socketPath, timedOut: timedOut(startedAt, options) });
  }
}

/** Timers fire up to a millisecond early, and the server's clock may be ahead of ours by as much. */
const CLOCK_SLACK_MS = 5;

function timedOut(startedAt: number, { timeoutMs }: CallOptions): boolean {
  return performance.now() - startedAt >= timeoutMs - CLOCK_SLACK_MS;
}

/**
 * Decodes strings with the engine's decoder: the library decodes byte by byte, which takes twice as long when
 * interpreted.
 */
export class TextReader extends BinaryReader {
  readonly #text: Buffer;

  constructor(bytes: Uint8Array) {
    super(bytes);
    this.#text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  override string(): string {
    const { length } = this.bytes();
    return this.#text.toString("utf8", this.pos - length, this.pos);
  }
}
