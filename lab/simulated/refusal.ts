import { Code, ConnectError } from "@connectrpc/connect";

/** Whatever containerd has no code for arrives as Unknown. */
export function refusal(text: string): ConnectError {
  return new ConnectError(text, Code.Unknown);
}

export function notFound(what: string): ConnectError {
  return new ConnectError(`${what}: not found`, Code.NotFound);
}
