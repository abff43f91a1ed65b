import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";

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

/** Resolves when the server says OK, rejects with what it says otherwise. */
export function statusOf(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve, reject) => {
    let decided = false;
    const decide = (headers: IncomingHttpHeaders): void => {
      const status = headers["grpc-status"];
      if (decided || status === undefined) return;
      decided = true;
      if (Number(status) === GrpcStatus.ok) resolve();
      else reject(new GrpcError(Number(status), percentDecoded(String(headers["grpc-message"] ?? ""))));
    };
    stream.on("response", (headers) => {
      const code = headers[":status"];
      decide(headers);
      if (!decided && code !== 200) reject(new GrpcError(GrpcStatus.unavailable, `HTTP status ${code}`));
    });
    stream.on("trailers", decide);
    stream.on("error", reject);
    stream.on("close", () => reject(new GrpcError(GrpcStatus.unavailable, "")));
  });
}

/** grpc-message is percent-encoded UTF-8; a server that encodes badly must not cost us its text. */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
