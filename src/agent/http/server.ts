import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { SecureContextOptions } from "node:tls";
import { pause } from "../../host/poll.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { agentMetrics } from "../metrics/agent-metrics.ts";
import type { Watched } from "../state/store.ts";
import { certificateFiles, OPEN_GATE, type TlsFiles, tokenGate } from "./credentials.ts";
import { eventStream } from "./event-stream.ts";
import { type ListenAddress, parseListenAddress } from "./listen-address.ts";
import { answer, builtPage, type StatusPage } from "./routes.ts";

export interface AgentServerOptions {
  readonly store: Watched;
  /** HOST:PORT, [IPv6]:PORT or :PORT. */
  readonly listen: string;
  readonly tls?: TlsFiles;
  /** The token that is required for everything but /healthz and /readyz. */
  readonly tokenFile?: string;
  /** The maximum age of the last scan for readiness. */
  readonly readyWithinMs: () => number;
  /** Called for later errors; the server continues. */
  readonly warn: (message: string, detail: string) => void;
  /** Defaults to the page of the build. */
  readonly page?: () => Promise<StatusPage>;
  /** The interval of checks for a renewed certificate; 30 s by default. */
  readonly renewEveryMs?: number;
}

const RENEW_EVERY_MS = 30_000;

/** The status server: read-only HTTP. Throws a user-facing message if it cannot listen as configured. */
export async function openAgentServer(options: AgentServerOptions) {
  const { store, tokenFile, tls, readyWithinMs, warn } = options;
  const where = parseListenAddress(options.listen);
  const gate = tokenFile === undefined ? OPEN_GATE : await tokenGate(tokenFile);
  const metrics = agentMetrics(store, { process: true });
  const events = eventStream(store);
  const page = options.page ?? builtPage;
  const parts = { listenHost: where.host, store, gate, metrics, readyWithinMs, events, page };

  function handler(request: IncomingMessage, response: ServerResponse): void {
    answer(parts, request, response).catch((error: unknown) => {
      warn("request failed", `${request.method} ${request.url}: ${(error as Error).message}`);
      response.destroy();
    });
  }

  function stopWatching(): void {
    events.close();
    metrics.close();
  }

  const server = await listenWithRenewal({ ...options, where, handler }).catch((error: unknown) => {
    stopWatching();
    throw error;
  });
  return {
    /** As a browser URL: http://127.0.0.1:20258 */
    address: `${tls === undefined ? "http" : "https"}://${showAddress(server.bound.address, server.bound.port)}`,
    close: async (): Promise<void> => {
      stopWatching();
      await server.close();
    },
  };
}

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

function createHttpServer(handler: RequestListener, certificate?: SecureContextOptions): Server {
  const server: Server =
    certificate === undefined ? createServer(LIMITS, handler) : createTlsServer({ ...LIMITS, ...certificate }, handler);
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = IDLE_MS;
  return server;
}

async function listenOn(server: Server, { host, port }: ListenAddress): Promise<AddressInfo> {
  try {
    const listening = once(server, "listening");
    server.listen(port, host);
    await listening;
  } catch (error) {
    const why = WHY_NOT[errorCode(error) ?? ""] ?? describeError(error);
    throw new Error(`cannot listen on ${showAddress(host ?? "", port)}: ${why}.`, { cause: error });
  }
  return server.address() as AddressInfo;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const rest = setTimeout(() => server.closeAllConnections(), CLOSING_MS);
    server.close(() => {
      clearTimeout(rest);
      resolve();
    });
    server.closeIdleConnections();
  });
}

function showAddress(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

type ListenOptions = AgentServerOptions & { readonly where: ListenAddress; readonly handler: RequestListener };

/**
 * With TLS the certificate is loaded again when it changes. Bun cannot replace the certificate of a running server, so
 * another server replaces it on the same port. While the new files are invalid the old certificate stays.
 */
async function listenWithRenewal({ where, handler, tls, renewEveryMs = RENEW_EVERY_MS, warn }: ListenOptions) {
  const certificate = tls && certificateFiles(tls);
  const open = async (): Promise<Server> => createHttpServer(handler, await certificate?.read());
  let server = await open();
  const bound = await listenOn(server, where);
  const stop = new AbortController();

  async function renew(): Promise<void> {
    if (server.listening && (await certificate?.hasChanged()) !== true) return;
    const next = await open();
    const previous = closeServer(server);
    server = next;
    await listenOn(next, { host: where.host, port: bound.port });
    await previous;
  }

  async function keepRenewing(): Promise<void> {
    let reported: string | undefined;
    for (;;) {
      await pause(renewEveryMs, stop.signal);
      if (stop.signal.aborted) return;
      const problem = await renew().then(
        () => undefined,
        (error: unknown) => (error as Error).message,
      );
      if (problem !== undefined && problem !== reported)
        warn("renewing the certificate failed; the previous one stays active", problem);
      reported = problem;
    }
  }

  const renewing = certificate && keepRenewing();
  return {
    bound,
    close: async () => {
      stop.abort();
      await renewing;
      await closeServer(server);
    },
  };
}
