import type { IncomingMessage, ServerResponse } from "node:http";
import { agentMetrics } from "../metrics/agent-metrics.ts";
import type { Watched } from "../store.ts";
import { certificateFiles, type TlsFiles } from "./certificate.ts";
import { eventStream } from "./event-stream.ts";
import { closeServer, createHttpServer, listenOn, showAddress } from "./http-server.ts";
import { parseListenAddress } from "./listen-address.ts";
import { builtPage, type StatusPage } from "./page.ts";
import { watchReadiness } from "./readiness.ts";
import { type Listening, listenWithRenewal } from "./renewing-server.ts";
import { answer } from "./routes.ts";
import { OPEN_GATE, tokenGate } from "./token.ts";

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
