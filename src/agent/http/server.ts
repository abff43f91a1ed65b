import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type SecureContextOptions } from "node:tls";
import { isLoopback } from "../../host/http-page.ts";
import { pause } from "../../host/poll.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { agentMetrics } from "../metrics/agent-metrics.ts";
import type { Watched } from "../state/store.ts";
import { serveConnection } from "./connection.ts";
import { certificateFiles, OPEN_GATE, type TlsFiles, tokenGate } from "./credentials.ts";
import { eventStream } from "./event-stream.ts";
import { type ListenAddress, parseListenAddress } from "./listen-address.ts";
import { connectionPlaces } from "./places.ts";
import { answer, builtPage, type StatusPage, sharedBytes } from "./routes.ts";

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
  const gate = tokenFile === undefined ? OPEN_GATE : await tokenGate(tokenFile);
  const metrics = agentMetrics(store, { process: true });
  const events = eventStream(store);
  const page = options.page ?? builtPage;
  const parts = { store, gate, metrics, readyWithinMs, events, page, bytes: sharedBytes() };
  const listeners: Awaited<ReturnType<typeof listenWithRenewal>>[] = [];

  async function close(): Promise<void> {
    events.close();
    metrics.close();
    await Promise.all(listeners.map((listener) => listener.close()));
  }

  async function listen(where: ListenAddress): Promise<AddressInfo> {
    const serve: Serve = async (socket, closing) => {
      try {
        await serveConnection(socket, { reply: (request) => answer(parts, where.host, request), closing });
      } catch (error) {
        warn("request failed", describeError(error));
        socket.destroy();
      }
    };
    const listener = await listenWithRenewal({ ...options, where, serve });
    listeners.push(listener);
    return listener.bound;
  }

  const where = parseListenAddress(options.listen);
  try {
    const bound = await listen(where);
    // Probes and `kubectl port-forward` reach the agent there, whatever the network does to the other address.
    if (hasNoLoopback(where)) await listen({ host: LOOPBACK, port: bound.port });
    return {
      /** As a browser URL: http://127.0.0.1:20258 */
      address: `${tls === undefined ? "http" : "https"}://${showAddress(bound.address, bound.port)}`,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

const LOOPBACK = "127.0.0.1";

/** One address of the network: neither loopback nor every address. */
function hasNoLoopback({ host }: ListenAddress): boolean {
  return host !== undefined && !isLoopback(host) && !["0.0.0.0", "::"].includes(host);
}

type Serve = (socket: Socket, closing: AbortSignal) => Promise<void>;

const HANDSHAKE_MS = 5000;
/** Answers in flight at the end get this much time. */
const CLOSING_MS = 1000;

const WHY_NOT: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program listens there already. End it, or choose another port",
  EADDRNOTAVAIL: "this machine has no such address. Choose one of its own",
  EACCES: "ports below 1024 need root. Choose a higher one",
  ENOTFOUND: "the name is unknown. Give an address instead",
};

/** One listening socket and its connections. */
function openSockets(serve: Serve, certificate?: SecureContextOptions) {
  const places = connectionPlaces();
  const closing = new AbortController();
  const options = { allowHalfOpen: true, noDelay: true };
  const onReady = (socket: Socket): void => void serve(socket, closing.signal);
  const server: Server =
    certificate === undefined
      ? createServer(options, onReady)
      : createTlsServer({ ...options, ...certificate, handshakeTimeout: HANDSHAKE_MS }, onReady);
  server.on("connection", places.admit);
  server.on("tlsClientError", (_error: Error, socket: Socket) => socket.destroy());

  function close(): Promise<void> {
    closing.abort();
    return new Promise((resolve) => {
      const rest = setTimeout(() => places.closeAll(), CLOSING_MS);
      server.close(() => {
        clearTimeout(rest);
        resolve();
      });
    });
  }

  return { server, close };
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

function showAddress(host: string, port: number): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

type ListenOptions = AgentServerOptions & { readonly where: ListenAddress; readonly serve: Serve };

/**
 * With TLS the certificate is loaded again when it changes. Bun cannot replace the certificate of a running server, so
 * another server replaces it on the same port. While the new files are invalid the old certificate stays.
 */
async function listenWithRenewal({ where, serve, tls, renewEveryMs = RENEW_EVERY_MS, warn }: ListenOptions) {
  const certificate = tls && certificateFiles(tls);
  const open = async () => openSockets(serve, await certificate?.read());
  let current = await open();
  const bound = await listenOn(current.server, where);
  const stop = new AbortController();

  async function renew(): Promise<void> {
    if (current.server.listening && (await certificate?.hasChanged()) !== true) return;
    const next = await open();
    const previous = current.close();
    current = next;
    await listenOn(next.server, { host: where.host, port: bound.port });
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
      await current.close();
    },
  };
}
