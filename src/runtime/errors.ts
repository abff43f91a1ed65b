import { statSync } from "../host/guarded-fs.ts";
import { errorCode } from "../host/source.ts";

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

/** The server sends more than any runtime would: the call is aborted before it uses up the node's memory. */
export class AnswerLimitError extends Error {
  override readonly name = "AnswerLimitError";
}

/**
 * Why a call to the runtime failed.
 *
 * - `unreachable`: no answer: no socket, no permission, no server behind it.
 * - `deadline`: the call was accepted and not answered in time. It may still take effect.
 * - `cancelled`: unghost aborted the call.
 * - `not-found`: the runtime has no such sandbox, container or record.
 * - `unsupported`: the runtime does not implement this call.
 * - `overflow`: the answer exceeds the limit of one message.
 * - `endless`: the answer exceeds any list of a runtime, and was aborted.
 * - `refused`: the runtime answered with an error; its text is kept verbatim.
 */
export type RuntimeErrorKind =
  | "unreachable"
  | "deadline"
  | "cancelled"
  | "not-found"
  | "unsupported"
  | "overflow"
  | "endless"
  | "refused";

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly kind: RuntimeErrorKind;
  readonly call: string;
  /** The runtime's text without code or prefix. Diagnosis reads it; never reword it. */
  readonly text: string;
  /** What the operator can do about it. */
  readonly next: string;

  constructor(kind: RuntimeErrorKind, call: string, text: string, next: string, cause?: unknown) {
    super(sentence(kind, call, text), { cause });
    this.kind = kind;
    this.call = call;
    this.text = text;
    this.next = next;
  }
}

/** Turns one kind of error into a value. */
export async function unless<T>(kind: RuntimeErrorKind, answer: T, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof RuntimeError && error.kind === kind) return answer;
    throw error;
  }
}

/** What the caller knows about a failed call in addition to the thrown value. */
export interface FailedCall {
  readonly call: string;
  readonly socketPath: string;
  /** The call's own timeout had passed when it failed. */
  readonly timedOut: boolean;
}

/** Converts any thrown value into a RuntimeError. No other code interprets transport errors. */
export function toRuntimeError(thrown: unknown, failed: FailedCall): RuntimeError {
  if (thrown instanceof RuntimeError) return thrown;
  if (thrown instanceof AnswerLimitError) {
    const next = `Check which process listens at ${failed.socketPath}: no runtime answers like this.`;
    return new RuntimeError("endless", failed.call, thrown.message, next, thrown);
  }
  if (!(thrown instanceof GrpcError)) return unreachable(failed, thrown);
  const text = thrown.message;
  function errorOf(kind: RuntimeErrorKind, next: string): RuntimeError {
    return new RuntimeError(kind, failed.call, text, next, thrown);
  }
  switch (thrown.status) {
    // Without a text, unghost cancelled the call. With one, the server noticed the deadline first, or it forwards a
    // plugin's error, which has more detail.
    case GrpcStatus.deadlineExceeded:
      if (text === "" || failed.timedOut) return errorOf("deadline", slowNext(failed.socketPath));
      return errorOf("refused", "Check the runtime's log for the same moment.");
    case GrpcStatus.cancelled:
      if (failed.timedOut) return errorOf("deadline", slowNext(failed.socketPath));
      return text === "" ? errorOf("cancelled", "Run it again.") : errorOf("refused", EXPLAIN);
    case GrpcStatus.notFound:
      return errorOf("not-found", "It is gone; scan again.");
    case GrpcStatus.unimplemented:
      return errorOf("unsupported", "unghost does without it on this runtime.");
    case GrpcStatus.resourceExhausted:
      // A full disk is reported under the same code.
      return text.includes("larger than")
        ? errorOf("overflow", "unghost reads the list in parts.")
        : errorOf("refused", EXPLAIN);
    case GrpcStatus.unavailable:
      // containerd answers like this until its CRI plugin has loaded all records.
      if (text !== "") return downError(failed, `does not serve yet: ${text}`, thrown);
      // grpc-go resets the stream of a call whose deadline has passed.
      return failed.timedOut ? errorOf("deadline", slowNext(failed.socketPath)) : downError(failed, HUNG_UP, thrown);
    default:
      return errorOf("refused", EXPLAIN);
  }
}

const EXPLAIN = "`unghost explain` explains this message.";

function sentence(kind: RuntimeErrorKind, call: string, text: string): string {
  switch (kind) {
    case "unreachable":
      return text;
    case "deadline":
      return `${call}: the runtime accepted the call and did not answer in time`;
    case "cancelled":
      return `${call}: given up`;
    case "not-found":
      return `${call}: the runtime knows no such object: ${text}`;
    case "unsupported":
      return `${call}: this runtime does not offer the call`;
    case "overflow":
      return `${call}: the answer is too large for one message: ${text}`;
    case "endless":
    case "refused":
      return `${call}: ${text}`;
  }
}

function unreachable(failed: FailedCall, cause: unknown): RuntimeError {
  const path = failed.socketPath;
  const systemCode = errorCode(cause);
  const seen = fileAt(path);
  function errorOf(text: string, next: string): RuntimeError {
    return new RuntimeError("unreachable", failed.call, text, next, cause);
  }
  if (seen === "missing") {
    return errorOf(
      `no runtime socket at ${path}`,
      "Start the runtime, or name another socket with --runtime-endpoint.",
    );
  }
  if (seen === "forbidden" || systemCode === "EACCES" || systemCode === "EPERM") {
    return errorOf(`no permission to reach the runtime socket ${path}`, "Run unghost as root.");
  }
  if (seen === "not-a-socket") {
    return errorOf(`${path} is not a socket`, "Name the runtime's socket with --runtime-endpoint.");
  }
  if (systemCode === "ERR_HTTP2_ERROR") {
    return errorOf(`the server at ${path} is not a gRPC server`, "Name the runtime's socket with --runtime-endpoint.");
  }
  if (systemCode === "ECONNREFUSED") return errorOf(`connection refused at ${path}: no process listens`, DOWN);
  return downError(failed, HUNG_UP, cause);
}

const HUNG_UP = "hung up";
const DOWN = "The runtime is down or restarting: check its service and log, then scan again.";

function downError(failed: FailedCall, what: string, cause: unknown): RuntimeError {
  return new RuntimeError("unreachable", failed.call, `the runtime at ${failed.socketPath} ${what}`, DOWN, cause);
}

function fileAt(path: string): "missing" | "forbidden" | "not-a-socket" | "socket" {
  try {
    return statSync(path).isSocket() ? "socket" : "not-a-socket";
  } catch (error) {
    const code = errorCode(error);
    return code === "EACCES" || code === "EPERM" ? "forbidden" : "missing";
  }
}

function slowNext(path: string): string {
  return `The runtime behind ${path} does not answer in time: check its log, disk and CPU pressure, then try a longer --timeout.`;
}
