import { isIP, isIPv6 } from "node:net";
import { isLoopback } from "../../host/http-page.ts";

export interface ListenAddress {
  /** Undefined: all addresses of the machine. */
  readonly host: string | undefined;
  readonly port: number;
}

const FORM = "Give HOST:PORT, for example 127.0.0.1:20258, [::1]:20258, or :20258 for every address of the node.";

/**
 * Brackets are for IPv6 and may also hold an IPv4 address, as in `[$(HOST_IP)]:20258`. Throws with a valid example: an
 * agent that listens elsewhere than configured is worse than one that does not listen.
 */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(?:\[(?<bracketed>[^\]]+)\]|(?<plain>[^[\]\s]*)):(?<port>\d{1,5})$/.exec(text);
  const { bracketed, plain, port } = match?.groups ?? {};
  if (port === undefined) throw new Error(`cannot listen on "${text}". ${FORM}`);
  if (Number(port) > 65_535) throw new Error(`cannot listen on "${text}": ports end at 65535. ${FORM}`);
  if (bracketed !== undefined && isIP(bracketed) === 0) {
    throw new Error(`cannot listen on "${text}": "${bracketed}" is no IP address. ${FORM}`);
  }
  // "fd00::1:20258" has one meaning, because no part of an address has five digits; "fd00::1:8080" has two.
  if (plain?.includes(":") === true && (isIPv6(text) || !isIPv6(plain))) {
    throw new Error(`cannot listen on "${text}": an IPv6 address goes in brackets, as in [fd00::1]:20258. ${FORM}`);
  }
  return { host: bracketed ?? (plain || undefined), port: Number(port) };
}

/** Other machines can reach the agent without a token. */
export function isOpenToNetwork(listen: string, tokenFile: string | undefined): boolean {
  return tokenFile === undefined && !isLoopback(parseListenAddress(listen).host);
}
