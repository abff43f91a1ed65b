import { once } from "node:events";
import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { GrpcError, GrpcStatus } from "../../src/runtime/errors.ts";
import { frame, MessageReader } from "../../src/runtime/grpc.ts";
import type { Handlers } from "./handlers.ts";

const HEADERS = { ":status": 200, "content-type": "application/grpc" };

/** Answers one call on its HTTP/2 stream. Never rejects: a client that disconnects early is ignored. */
export async function answerCall(
  handlers: Handlers,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const over = new AbortController();
  stream.on("error", () => over.abort());
  // The call is answered at its deadline, while a handler that ignores the signal continues, as in real runtimes.
  const timer = setTimeout(() => {
    finish(stream, new GrpcError(GrpcStatus.deadlineExceeded, "context deadline exceeded"));
    over.abort();
  }, timeoutMs(headers["grpc-timeout"]));
  stream.once("close", () => {
    clearTimeout(timer);
    over.abort();
  });
  try {
    const path = String(headers[":path"]);
    const handler = handlers.get(path);
    if (!handler) throw new GrpcError(GrpcStatus.unimplemented, `unknown method ${path}`);
    const request = await onlyMessage(stream);
    for await (const message of handler(request, { headers, signal: over.signal })) {
      await send(stream, message, over.signal);
    }
    finish(stream, new GrpcError(GrpcStatus.ok, ""));
  } catch (error) {
    finish(stream, error instanceof GrpcError ? error : new GrpcError(GrpcStatus.unknown, String(error)));
  }
}

/** Reads to the end: leaving the loop earlier would reset the stream. */
async function onlyMessage(stream: ServerHttp2Stream): Promise<Uint8Array> {
  const reader = new MessageReader();
  let first: Uint8Array | undefined;
  for await (const chunk of stream) {
    for (const message of reader.push(chunk)) first ??= message;
  }
  if (!first) throw new GrpcError(GrpcStatus.internal, "the request holds no message");
  return first;
}

async function send(stream: ServerHttp2Stream, message: Uint8Array, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!stream.headersSent) stream.respond(HEADERS, { waitForTrailers: true });
  if (!stream.write(frame(message))) await once(stream, "drain", { signal });
}

function finish(stream: ServerHttp2Stream, { status, message }: GrpcError): void {
  if (stream.destroyed || stream.writableEnded) return;
  const trailers = { "grpc-status": status, "grpc-message": percentEncoded(message) };
  if (!stream.headersSent) {
    stream.respond({ ...HEADERS, ...trailers }, { endStream: true });
    return;
  }
  stream.once("wantTrailers", () => stream.sendTrailers(trailers));
  stream.end();
}

/** Everything but printable ASCII, and the percent sign itself, byte by byte. */
function percentEncoded(text: string): string {
  return text.replace(/[^ -$&-~]+/gu, (part) =>
    [...Buffer.from(part)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 };
/** The maximum of timers. */
const LONGEST_MS = 2 ** 31 - 1;

function timeoutMs(header: string | string[] | undefined): number {
  const [, digits, unit = ""] = /^(\d{1,8})([HMSmun])$/.exec(String(header)) ?? [];
  return digits === undefined ? LONGEST_MS : Math.min(Number(digits) * (UNIT_MS[unit] ?? 1), LONGEST_MS);
}
