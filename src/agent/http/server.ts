import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { describeError, errorCode } from "../../host/source.ts";
import { agentMetrics } from "../metrics/agent-metrics.ts";
import type { Watched } from "../state/store.ts";
import {
  type Certificate,
  type CertificateFiles,
  certificateFiles,
  OPEN_GATE,
  type TlsFiles,
  tokenGate,
} from "./credentials.ts";
import { eventStream } from "./event-stream.ts";
import { type ListenAddress, parseListenAddress } from "./listen-address.ts";
import { answer, builtPage, type StatusPage, watchReadiness } from "./routes.ts";

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

export interface AgentServer {
  /** As a browser URL: http://127.0.0.1:20258 */
  readonly address: string;
  close(): Promise<void>;
}

const RENEW_EVERY_MS = 30_000;

/** The status server: read-only HTTP. Throws a user-facing message if it cannot listen as configured. */
export async function openAgentServer(options: AgentServerOptions): Promise<AgentServer> {
  const { store, tokenFile, warn } = options;
  const where = parseListenAddress(options.listen);
  const gate = tokenFile === undefined ? OPEN_GATE : await tokenGate(tokenFile);
  const metrics = agentMetrics(store, { process: true });
  const readiness = watchReadiness(store, options.readyWithinMs);
  const events = eventStream(store);
  const page = options.page ?? builtPage;
  const parts = { listenHost: where.host, store, gate, metrics, readiness, events, page };

  function handler(request: IncomingMessage, response: ServerResponse): void {
    answer(parts, request, response).catch((error: unknown) => {
      warn("request failed", `${request.method} ${request.url}: ${(error as Error).message}`);
      response.destroy();
    });
  }

  function stopWatching(): void {
    events.close();
    readiness.close();
    metrics.close();
  }

  async function start(): Promise<Listening> {
    if (options.tls !== undefined) {
      const certificate = certificateFiles(options.tls);
      const renewEveryMs = options.renewEveryMs ?? RENEW_EVERY_MS;
      return listenWithRenewal({ where, handler, certificate, renewEveryMs, warn });
    }
    const server = createHttpServer(handler);
    return { bound: await listenOn(server, where), close: () => closeServer(server) };
  }

  const listening = await start().catch((error: unknown) => {
    stopWatching();
    throw error;
  });
  const scheme = options.tls === undefined ? "http" : "https";
  return {
    address: `${scheme}://${showAddress(listening.bound.address, listening.bound.port)}`,
    close: async () => {
      stopWatching();
      await listening.close();
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

export interface ServerPlan {
  readonly where: ListenAddress;
  readonly handler: RequestListener;
  readonly certificate: CertificateFiles;
  readonly renewEveryMs: number;
  readonly warn: (message: string, detail: string) => void;
}

export interface Listening {
  readonly bound: AddressInfo;
  close(): Promise<void>;
}

/**
 * An HTTPS server that reloads its certificate. Bun cannot replace the certificate of a running server, so another
 * server replaces it on the same port. While the new files are invalid the old certificate stays.
 */
export async function listenWithRenewal(plan: ServerPlan): Promise<Listening> {
  let server = createHttpServer(plan.handler, await plan.certificate.read());
  const bound = await listenOn(server, plan.where);
  let reported: string | undefined;
  let closing = false;
  let renewing = Promise.resolve();
  let timer = setTimeout(tick, plan.renewEveryMs).unref();

  function tick(): void {
    renewing = renew().then(
      () => complain(undefined),
      (error: unknown) => complain((error as Error).message),
    );
  }

  async function renew(): Promise<void> {
    if (server.listening && !(await plan.certificate.hasChanged())) return;
    const next = createHttpServer(plan.handler, await plan.certificate.read());
    const previous = closeServer(server);
    server = next;
    await listenOn(next, { host: plan.where.host, port: bound.port });
    await previous;
  }

  function complain(problem: string | undefined): void {
    if (problem !== undefined && problem !== reported)
      plan.warn("renewing the certificate failed; the previous one stays active", problem);
    reported = problem;
    if (!closing) timer = setTimeout(tick, plan.renewEveryMs).unref();
  }

  return {
    bound,
    close: async () => {
      closing = true;
      clearTimeout(timer);
      await renewing;
      await closeServer(server);
    },
  };
}
