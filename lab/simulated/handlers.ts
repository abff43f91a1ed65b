import type { IncomingHttpHeaders } from "node:http2";

/** The context of a call besides the request. */
export interface CallContext {
  readonly headers: IncomingHttpHeaders;
  /** Aborted when the client has disconnected or its deadline has passed. */
  readonly signal: AbortSignal;
}

/** One method of a service, bytes in and bytes out. Throws GrpcError for the client. */
export type Handler = (request: Uint8Array, context: CallContext) => AsyncIterable<Uint8Array>;

/** Handlers by the path that a request names: `/package.Service/Method`. */
export type Handlers = ReadonlyMap<string, Handler>;

/** The generated codec of one message type. */
export interface Codec<Message> {
  encode(message: Message): { finish(): Uint8Array };
  decode(bytes: Uint8Array): Message;
}

export function unary<Request, Response>(
  request: Codec<Request>,
  response: Codec<Response>,
  answer: (request: Request, context: CallContext) => Response | Promise<Response>,
): Handler {
  return async function* (bytes, context) {
    yield response.encode(await answer(request.decode(bytes), context)).finish();
  };
}

export function serverStream<Request, Response>(
  request: Codec<Request>,
  response: Codec<Response>,
  answer: (request: Request, context: CallContext) => AsyncIterable<Response>,
): Handler {
  return async function* (bytes, context) {
    for await (const message of answer(request.decode(bytes), context)) yield response.encode(message).finish();
  };
}
