import { isLoopback } from "./listen-address.ts";

/**
 * DNS rebinding: a web page whose name is made to point at 127.0.0.1 talks to this agent as its own origin, from the
 * browser of whoever sits at the machine. Its name stands in the Host header, so on loopback only loopback names pass.
 * The port is not compared: forwarded ones differ.
 */
export function isForeignHost(listenHost: string | undefined, hostHeader: string | undefined): boolean {
  if (!isLoopback(listenHost)) return false;
  // HTTP/1.0 without a Host header: no browser speaks it.
  if (hostHeader === undefined) return false;
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(hostHeader);
  const name = match?.[1] ?? match?.[2];
  return !isLoopback(name);
}
