import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { GrpcError, GrpcStatus, statusIn } from "./grpc-status.ts";

/** How long a call may take, and who may end it before. */
export interface CallBounds {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

export interface RunningCall {
  readonly stream: ClientHttp2Stream;
  /** Resolves when the server says OK, rejects with why it does not. Only the first reason counts. */
  readonly ended: Promise<void>;
  readonly giveUp: (reason: unknown) => void;
}

/** Sends one request. Its answer is read from the stream; how it ended is known by `ended` alone. */
export function startCall(
  session: ClientHttp2Session,
  headers: Readonly<Record<string, string>>,
  request: Uint8Array,
  { timeoutMs, signal }: CallBounds,
): RunningCall {
  const stream = session.request({ ...headers, "grpc-timeout": timeoutHeader(timeoutMs) });
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  // A reader that leaves before the end never asks how the call ended.
  ended.catch(() => undefined);
  let said: ReturnType<typeof statusIn>;

  function settle(outcome: unknown): void {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    if (outcome === "ok") resolve();
    else reject(outcome);
  }
  function giveUp(reason: unknown): void {
    settle(reason);
    if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  }
  function onAbort(): void {
    giveUp(abortError(signal?.reason));
  }

  const timer = setTimeout(
    () => giveUp(new GrpcError(GrpcStatus.deadlineExceeded, "")),
    Math.min(timeoutMs, LONGEST_TIMER_MS),
  );
  signal?.addEventListener("abort", onAbort, { once: true });
  stream.on("response", (answer) => {
    said = statusIn(answer);
  });
  stream.on("trailers", (trailers) => {
    said ??= statusIn(trailers);
  });
  // A connection that cannot be opened or breaks ends each of its streams with an error or without one.
  stream.on("error", (error) => settle(said ?? error));
  stream.on("close", () => settle(said ?? new GrpcError(GrpcStatus.unavailable, "")));
  stream.end(request);
  return { stream, ended, giveUp };
}

/** A signal that is a timer in itself is a deadline as well. */
export function abortError(reason: unknown): GrpcError {
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return new GrpcError(timedOut ? GrpcStatus.deadlineExceeded : GrpcStatus.cancelled, "");
}

/** What is above fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Eight digits are all that a server has to accept. */
const MOST_IN_HEADER = 99_999_999;

function timeoutHeader(timeoutMs: number): string {
  const ms = Math.max(1, Math.ceil(timeoutMs));
  return ms <= MOST_IN_HEADER ? `${ms}m` : `${Math.min(Math.ceil(ms / 1000), MOST_IN_HEADER)}S`;
}
