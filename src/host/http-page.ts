import { isIP } from "node:net";
import type { BuiltPage } from "./built-page.ts";

/** 127.0.0.0/8, ::1 and localhost: reachable only from this machine. */
export function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  if (host.toLowerCase() === "localhost") return true;
  return isIP(host) === 4 ? host.startsWith("127.") : host === "::1";
}

/**
 * DNS rebinding: a web page whose name resolves to 127.0.0.1 talks to this server as its own origin, from the browser of
 * a local user. Its name is in the Host header, so on loopback only loopback names are accepted. The port is not
 * compared, because forwarded ports differ.
 */
export function isForeignHost(hostHeader: string | undefined): boolean {
  // HTTP/1.0 without a Host header: no browser uses it.
  if (hostHeader === undefined) return false;
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(hostHeader);
  const name = match?.[1] ?? match?.[2];
  return !isLoopback(name);
}

/** For every response. No CORS header: other origins may not read anything. */
export const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** The page may run its own inline script and style, show an embedded icon, and connect to its own server. */
export function pagePolicy({ scriptHashes, styleHashes }: Pick<BuiltPage, "scriptHashes" | "styleHashes">): string {
  return [
    "default-src 'none'",
    `script-src ${sources(scriptHashes)}`,
    `style-src ${sources(styleHashes)}`,
    "img-src data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function sources(hashes: readonly string[]): string {
  return hashes.length === 0 ? "'none'" : hashes.map((hash) => `'${hash}'`).join(" ");
}
