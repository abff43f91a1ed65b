import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describeError, errorCode } from "../../host/source.ts";
import type { Certificate } from "./certificate.ts";
import type { ListenAddress } from "./listen-address.ts";

/** All valid requests are short; slow or large ones are disconnected. */
const LIMITS = {
  maxHeaderSize: 8 * 1024,
  headersTimeout: 5000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1000,
  keepAliveTimeout: 30_000,
} as const;
const MAX_CONNECTIONS = 64;
/** Timeout of an idle connection. */
const IDLE_MS = 60_000;
/** Responses in flight at the end get this much time. */
const CLOSING_MS = 1000;

const WHY_NOT: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there already. End it, or choose another port",
  EADDRNOTAVAIL: "this machine has no such address. Choose one of its own",
  EACCES: "ports below 1024 need root. Choose a higher one",
  ENOTFOUND: "the name is unknown. Give an address instead",
};

export function createHttpServer(handler: RequestListener, certificate?: Certificate): Server {
  const server: Server =
    certificate === undefined ? createServer(LIMITS, handler) : createTlsServer({ ...LIMITS, ...certificate }, handler);
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = IDLE_MS;
  return server;
}

export async function listenOn(server: Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, host, () => {
        server.off("error", reject);
        resolve();
      });
    });
  } catch (error) {
    const why = WHY_NOT[errorCode(error) ?? ""] ?? describeError(error);
    throw new Error(`cannot listen on ${showAddress(host ?? "", port)}: ${why}.`, { cause: error });
  }
  return server.address() as AddressInfo;
}

export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const rest = setTimeout(() => server.closeAllConnections(), CLOSING_MS);
    server.close(() => {
      clearTimeout(rest);
      resolve();
    });
    server.closeIdleConnections();
  });
}

export function showAddress(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}
