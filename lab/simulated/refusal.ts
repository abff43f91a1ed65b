import { GrpcError, GrpcStatus } from "../../src/runtime/grpc-status.ts";

/** Whatever containerd has no code for arrives as Unknown. */
export function refusal(text: string): GrpcError {
  return new GrpcError(GrpcStatus.unknown, text);
}

export function notFound(what: string): GrpcError {
  return new GrpcError(GrpcStatus.notFound, `${what}: not found`);
}
