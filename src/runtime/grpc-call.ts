import type { AnswerLimits } from "./answer-limits.ts";
import { GrpcError, GrpcStatus, statusIn } from "./grpc-status.ts";
import type { Connection } from "./http2/connection.ts";
import type { Headers } from "./http2/hpack-decode.ts";
import { ErrorCode } from "./http2/protocol.ts";
import type { Stream, StreamEnd, StreamListener } from "./http2/stream.ts";

/** The timeout and the abort signal of a call. */
export interface CallBounds {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A stream whose messages are not kept may have no other limit. */
export interface StreamBounds extends CallBounds {
  readonly limits?: AnswerLimits;
}

/** One request in flight. Its answer goes to `onBytes`; its result is in `ended`. */
export class Call implements StreamListener {
  /** Resolves when the server returns OK, rejects with its error otherwise. Only the first result counts. */
  readonly ended: Promise<void>;
  readonly #connection: Connection;
  readonly #stream: Stream;
  readonly #onBytes: (bytes: Uint8Array) => void;
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.giveUp(abortError(this.#signal?.reason));
  readonly #timer: NodeJS.Timeout;
  readonly #settled = Promise.withResolvers<void>();
  #status: ReturnType<typeof statusIn>;

  constructor(
    connection: Connection,
    headerBlock: Uint8Array,
    request: Uint8Array,
    { timeoutMs, signal }: CallBounds,
    onBytes: (bytes: Uint8Array) => void,
  ) {
    this.#connection = connection;
    this.#onBytes = onBytes;
    this.#signal = signal;
    this.ended = this.#settled.promise;
    // A reader that leaves before the end does not await the result.
    this.ended.catch(() => undefined);
    this.#timer = setTimeout(
      () => this.giveUp(new GrpcError(GrpcStatus.deadlineExceeded, "")),
      Math.min(timeoutMs, LONGEST_TIMER_MS),
    );
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#stream = connection.request(headerBlock, request, this);
  }

  giveUp(reason: unknown): void {
    this.#settle(reason);
    this.#connection.cancel(this.#stream);
  }

  /** This many bytes of the answer are consumed. */
  consumed(bytes: number): void {
    this.#connection.consumed(this.#stream, bytes);
  }

  onHeaders(headers: Headers): void {
    this.#status ??= statusIn(headers);
  }

  onData(bytes: Uint8Array): void {
    try {
      this.#onBytes(bytes);
    } catch (error) {
      this.giveUp(error);
    }
  }

  onEnd(end: StreamEnd): void {
    this.#settle(this.#status ?? failureOf(end));
  }

  #settle(outcome: unknown): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    if (outcome === "ok") this.#settled.resolve();
    else this.#settled.reject(outcome);
  }
}

/** The error for a stream that ended without a status. */
function failureOf(end: StreamEnd): Error {
  switch (end.kind) {
    case "complete":
      return new GrpcError(GrpcStatus.unavailable, "");
    case "reset":
      if (end.errorCode === ErrorCode.noError || end.errorCode === ErrorCode.cancel) {
        return new GrpcError(GrpcStatus.unavailable, "");
      }
      return new Error(`the server gave the call up with error code ${end.errorCode} of HTTP/2`);
    case "lost":
      return new GrpcError(GrpcStatus.unavailable, "", { cause: end.cause });
    case "failed":
      return end.error;
  }
}

/** A signal that is a timer counts as a timeout. */
export function abortError(reason: unknown): GrpcError {
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return new GrpcError(timedOut ? GrpcStatus.deadlineExceeded : GrpcStatus.cancelled, "");
}

/** A longer timer would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
