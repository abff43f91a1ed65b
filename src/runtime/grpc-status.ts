import type { Headers } from "./http2/hpack-decode.ts";

/** The gRPC codes that callers distinguish. */
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

/** A call that was answered with an error, aborted or cut off. Connection errors keep their own type. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  readonly status: number;

  constructor(status: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
  }
}

/** The status in headers or trailers; undefined when they have none. */
export function statusIn(headers: Headers): "ok" | GrpcError | undefined {
  const status = headers.get("grpc-status");
  if (status !== undefined) {
    if (Number(status) === GrpcStatus.ok) return "ok";
    return new GrpcError(Number(status), percentDecoded(headers.get("grpc-message") ?? ""));
  }
  const http = headers.get(":status");
  if (http === undefined || http === "200") return undefined;
  return new GrpcError(GrpcStatus.unavailable, `HTTP status ${http}`);
}

/** grpc-message is percent-encoded UTF-8; the text is kept even if the encoding is invalid. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
