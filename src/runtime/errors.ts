import { statSync } from "node:fs";
import { Code, ConnectError } from "@connectrpc/connect";

/**
 * What went wrong in a call to the runtime, as callers need to tell it apart.
 *
 * - `unreachable`: nobody answered: no socket, no permission, no server behind it.
 * - `deadline`: somebody accepted the call and did not answer in time. The call may still take effect.
 * - `cancelled`: we gave up ourselves.
 * - `not-found`: the runtime knows no such sandbox, container or record.
 * - `unsupported`: the runtime is too old (or too different) for this call.
 * - `overflow`: the answer is larger than one message may be.
 * - `refused`: the runtime answered with an error of its own; its text is kept to the letter.
 */
export type RuntimeErrorKind =
  | "unreachable"
  | "deadline"
  | "cancelled"
  | "not-found"
  | "unsupported"
  | "overflow"
  | "refused";

export class RuntimeError extends Error {
  override readonly name = "RuntimeError";
  readonly kind: RuntimeErrorKind;
  readonly call: string;
  /** The runtime's own words, without code or prefix. Diagnosis reads it; never reword it. */
  readonly text: string;
  /** What the person at the keyboard can do about it. */
  readonly next: string;

  constructor(kind: RuntimeErrorKind, call: string, text: string, next: string, cause?: unknown) {
    super(sentence(kind, call, text), { cause });
    this.kind = kind;
    this.call = call;
    this.text = text;
    this.next = next;
  }
}

/** What the caller knows about a call that failed, and the thrown value does not tell. */
export interface FailedCall {
  readonly call: string;
  readonly socketPath: string;
  /** Our own deadline had passed. */
  readonly timedOut: boolean;
  /** Our own signal was aborted. */
  readonly aborted: boolean;
}

/** Turns whatever a call threw into a RuntimeError. The one place where transport details are understood. */
export function toRuntimeError(thrown: unknown, failed: FailedCall): RuntimeError {
  if (thrown instanceof RuntimeError) return thrown;
  const { call, socketPath } = failed;
  const error = ConnectError.from(thrown);
  const text = error.rawMessage;
  const ended = error.code === Code.Canceled || error.code === Code.DeadlineExceeded;
  if (ended && failed.aborted) return new RuntimeError("cancelled", call, text, "Run it again.", thrown);
  // The runtime knows our deadline too. When its clock wins it may reset the stream, which arrives as Canceled.
  if (ended && failed.timedOut) return new RuntimeError("deadline", call, text, slowNext(socketPath), thrown);
  const systemCode = systemCodeOf(error);
  if (systemCode !== undefined) return unreachable(failed, systemCode, thrown);
  switch (error.code) {
    case Code.Canceled:
      // A connection that is closed under a call looks like a cancelled one.
      if (text.startsWith("http/2 stream closed")) return hungUp(failed, thrown);
      break;
    case Code.NotFound:
      return new RuntimeError("not-found", call, text, "It is gone; scan again.", thrown);
    case Code.Unimplemented:
      return new RuntimeError("unsupported", call, text, "unghost does without it on this runtime.", thrown);
    case Code.ResourceExhausted:
      // Both sides say "larger than"; anything else that is exhausted (disk, pids) is a refusal like others.
      if (text.includes("larger than")) {
        return new RuntimeError("overflow", call, text, "unghost reads the list in parts.", thrown);
      }
      break;
    case Code.Unavailable:
      return notServing(failed, text, thrown);
    case Code.DeadlineExceeded:
      // Not our deadline: the runtime passes on that something behind it took too long.
      return new RuntimeError("refused", call, text, "Look into the runtime's log for the same moment.", thrown);
  }
  return new RuntimeError("refused", call, text, "`unghost explain` says what this text means.", thrown);
}

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
    case "refused":
      return `${call}: ${text}`;
  }
}

/**
 * Node and Bun hide ENOENT and its kin at different depths of the cause chain, once even behind code Internal. A peer
 * that does not speak HTTP/2 is known by a code of node:http2 in the same places.
 */
function systemCodeOf(error: Error): string | undefined {
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < 8; depth++) {
    const code: unknown = "code" in current ? current.code : undefined;
    if (typeof code === "string" && (/^E[A-Z]+$/.test(code) || code.startsWith("ERR_HTTP2_"))) return code;
    current = current.cause;
  }
  return undefined;
}

function unreachable(failed: FailedCall, systemCode: string, cause: unknown): RuntimeError {
  const path = failed.socketPath;
  const seen = lookAt(path);
  function because(text: string, next: string): RuntimeError {
    return new RuntimeError("unreachable", failed.call, text, next, cause);
  }
  if (seen === "missing") {
    return because(
      `no runtime socket at ${path}`,
      "Start the runtime, or name another socket with --runtime-endpoint.",
    );
  }
  if (seen === "forbidden" || systemCode === "EACCES" || systemCode === "EPERM") {
    return because(`no permission to reach the runtime socket ${path}`, "Run unghost as root.");
  }
  if (seen === "not-a-socket") {
    return because(`${path} is not a socket`, "Name the runtime's socket with --runtime-endpoint.");
  }
  if (systemCode === "ERR_HTTP2_ERROR") {
    return because(`what answers at ${path} does not speak gRPC`, "Name the runtime's socket with --runtime-endpoint.");
  }
  if (systemCode === "ECONNREFUSED") return because(`nobody listens at ${path} any more`, DOWN);
  return hungUp(failed, cause);
}

const DOWN = "The runtime is down or restarting: look at its service and log, then scan again.";

function hungUp(failed: FailedCall, cause: unknown): RuntimeError {
  return new RuntimeError("unreachable", failed.call, `the runtime at ${failed.socketPath} hung up`, DOWN, cause);
}

/** containerd answers like this until its CRI plugin has read all its records. */
function notServing(failed: FailedCall, text: string, cause: unknown): RuntimeError {
  const words = `the runtime at ${failed.socketPath} does not serve yet: ${text}`;
  return new RuntimeError("unreachable", failed.call, words, DOWN, cause);
}

function lookAt(path: string): "missing" | "forbidden" | "not-a-socket" | "socket" {
  try {
    return statSync(path).isSocket() ? "socket" : "not-a-socket";
  } catch (error) {
    const code = systemCodeOf(error as Error);
    return code === "EACCES" || code === "EPERM" ? "forbidden" : "missing";
  }
}

function slowNext(path: string): string {
  return `The runtime behind ${path} hangs: look at its log, at disk and CPU pressure, then try a longer --timeout.`;
}
