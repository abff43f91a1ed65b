import { GrpcError, GrpcStatus } from "../../src/runtime/errors.ts";

/** Errors without a code in containerd are Unknown. */
export function refusal(text: string): GrpcError {
  return new GrpcError(GrpcStatus.unknown, text);
}

export function notFound(what: string): GrpcError {
  return new GrpcError(GrpcStatus.notFound, `${what}: not found`);
}
