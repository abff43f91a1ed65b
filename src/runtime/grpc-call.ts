import type { AnswerLimits } from "./answer-limits.ts";
import { GrpcError, GrpcStatus, statusIn } from "./grpc-status.ts";
import type { Connection } from "./http2/connection.ts";
import type { Headers } from "./http2/hpack-decode.ts";
import { ErrorCode } from "./http2/protocol.ts";
import type { Stream, StreamEnd, StreamListener } from "./http2/stream.ts";

/** How long a call may take, and who may end it before. */
export interface CallBounds {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A stream of which nothing is kept has no bound but its time. */
export interface StreamBounds extends CallBounds {
  readonly limits?: AnswerLimits;
}

/** One request on its way. Its answer goes to `onBytes`; how it ended is known by `ended` alone. */
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
    // A reader that leaves before the end never asks how the call ended.
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

/** What it means that a stream has ended without a status. */
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

/** A signal that is a timer in itself is a deadline as well. */
export function abortError(reason: unknown): GrpcError {
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return new GrpcError(timedOut ? GrpcStatus.deadlineExceeded : GrpcStatus.cancelled, "");
}

/** What is above fires at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
