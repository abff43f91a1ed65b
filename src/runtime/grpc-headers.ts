import { encodeHeaders } from "./http2/hpack-encode.ts";

/** The part of a method that goes into its headers. */
export interface MethodHead {
  readonly path: string;
  /** Beside those of every call. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Encoded headers of each method: most calls repeat them. Callers have few methods, and few deadlines for each.
 */
const remembered = new WeakMap<MethodHead, Map<number, Uint8Array>>();
const MOST_REMEMBERED = 8;

export function headerBlock(method: MethodHead, timeoutMs: number): Uint8Array {
  const ofMethod = remembered.get(method) ?? new Map<number, Uint8Array>();
  remembered.set(method, ofMethod);
  const known = ofMethod.get(timeoutMs);
  if (known !== undefined) return known;
  const block = encodeHeaders([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", method.path],
    // Not resolved: the connection goes to the socket. Go servers require a plain name here.
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ...Object.entries(method.headers ?? {}),
    ["grpc-timeout", timeoutHeader(timeoutMs)],
  ]);
  if (ofMethod.size === MOST_REMEMBERED) ofMethod.clear();
  ofMethod.set(timeoutMs, block);
  return block;
}

/** Eight digits are all that a server has to accept. */
const MOST_IN_HEADER = 99_999_999;

function timeoutHeader(timeoutMs: number): string {
  const ms = Math.max(1, Math.ceil(timeoutMs));
  return ms <= MOST_IN_HEADER ? `${ms}m` : `${Math.min(Math.ceil(ms / 1000), MOST_IN_HEADER)}S`;
}
