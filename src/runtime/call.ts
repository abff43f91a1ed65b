import type { CallOptions as ConnectCallOptions } from "@connectrpc/connect";
import { type RuntimeError, toRuntimeError } from "./errors.ts";

/** Every call to the runtime is bounded: there is no way to make one without a deadline. */
export interface CallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A timer may fire a millisecond before the clock agrees that its time has come. */
const EARLY_TIMER_MS = 2;

/** Runs one call and gives its failure the shape that the rest of the program knows. */
export async function guarded<T>(
  name: string,
  socketPath: string,
  options: CallOptions,
  call: (options: ConnectCallOptions) => Promise<T>,
): Promise<T> {
  const startedAt = performance.now();
  try {
    return await call(connectOptions(options));
  } catch (error) {
    throw failure(error, name, socketPath, options, startedAt);
  }
}

/** The same for a call that answers with a stream. The deadline is for the whole stream. */
export async function* guardedStream<T>(
  name: string,
  socketPath: string,
  options: CallOptions,
  call: (options: ConnectCallOptions) => AsyncIterable<T>,
): AsyncIterable<T> {
  const startedAt = performance.now();
  try {
    yield* call(connectOptions(options));
  } catch (error) {
    throw failure(error, name, socketPath, options, startedAt);
  }
}

function connectOptions({ timeoutMs, signal }: CallOptions): ConnectCallOptions {
  // Go servers refuse a time-out with a fraction.
  const whole = Math.ceil(timeoutMs);
  return signal === undefined ? { timeoutMs: whole } : { timeoutMs: whole, signal };
}

function failure(
  error: unknown,
  call: string,
  socketPath: string,
  options: CallOptions,
  startedAt: number,
): RuntimeError {
  return toRuntimeError(error, {
    call,
    socketPath,
    timedOut: performance.now() - startedAt + EARLY_TIMER_MS >= options.timeoutMs,
    aborted: options.signal?.aborted === true,
  });
}
