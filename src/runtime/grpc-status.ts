import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";

/** The codes of gRPC that callers tell apart. */
export const GrpcStatus = {
  ok: 0,
  cancelled: 1,
  unknown: 2,
  deadlineExceeded: 4,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

/** A call that was answered with an error, or given up. Broken connections stay the errors that Node made of them. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** What headers or trailers say about the call; undefined when they leave it open. */
export function statusIn(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): "ok" | GrpcError | undefined {
  const status = headers["grpc-status"];
  if (status !== undefined) {
    if (Number(status) === GrpcStatus.ok) return "ok";
    return new GrpcError(Number(status), percentDecoded(String(headers["grpc-message"] ?? "")));
  }
  const http = headers[":status"];
  if (http === undefined || http === 200) return undefined;
  return new GrpcError(GrpcStatus.unavailable, `HTTP status ${http}`);
}

/** grpc-message is percent-encoded UTF-8; a server that encodes badly must not cost us its text. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
