import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { BuiltPage } from "../../host/built-page.ts";
import { isForeignHost, pagePolicy, SECURITY_HEADERS } from "../../host/http-page.ts";
import { pause } from "../../host/poll.ts";
import { describeError, errorCode } from "../../host/source.ts";
import type { FleetState } from "../../report/fleet-state.ts";

export interface DashboardOptions {
  /** 0: any free one. */
  readonly port: number;
  readonly page: BuiltPage;
  readonly first: FleetState;
  /** Throws if the cluster does not answer. */
  readonly read: () => Promise<Omit<FleetState, "version" | "cluster" | "trouble">>;
  /** Between two reads; a read that takes long is repeated less often. */
  readonly everyMs?: number;
}

const LOOPBACK = "127.0.0.1";
const EVERY_MS = 5000;
/** A tenth of the time is spent reading. */
const REST = 9;
/** A page takes silence for a broken connection. */
const REPEAT_MS = 60_000;
const MOST_LISTENERS = 16;
const READ_ONLY = ["GET", "HEAD"];

/** Serves the page on loopback, and reads the cluster while a page is open. Throws a sentence if it cannot listen. */
export async function openDashboard({ port, page, first, read, everyMs = EVERY_MS }: DashboardOptions) {
  const listeners = new Set<ServerResponse>();
  const ended = new AbortController();
  let state = first;
  let wake = Promise.withResolvers<void>();
  let sentAtMs = Number.NEGATIVE_INFINITY;

  const frame = () => `data: ${JSON.stringify(state)}\n\n`;

  function listen(response: ServerResponse): void {
    listeners.add(response);
    response.once("close", () => listeners.delete(response));
    response.write(frame());
    wake.resolve();
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const [path] = (request.url ?? "/").split("?", 1);
    if (isForeignHost(request.headers.host))
      return refuse(response, 421, "This dashboard answers to localhost, 127.0.0.1 and [::1] only.");
    if (!READ_ONLY.includes(request.method ?? ""))
      return refuse(response, 405, "Read-only server: only GET and HEAD are supported.");
    if (path === "/") {
      const headers = { "content-type": "text/html; charset=utf-8", "content-security-policy": pagePolicy(page) };
      return void response.writeHead(200, { ...SECURITY_HEADERS, ...headers }).end(page.html);
    }
    if (path === "/api/state") {
      const headers = { ...SECURITY_HEADERS, "content-type": "application/json" };
      return void response.writeHead(200, headers).end(JSON.stringify(state));
    }
    if (path !== "/api/events") return refuse(response, 404, "Not found. Try / or /api/state.");
    if (listeners.size >= MOST_LISTENERS) return refuse(response, 503, "Too many pages are open. Close one.");
    response.writeHead(200, { ...SECURITY_HEADERS, "content-type": "text/event-stream" });
    if (request.method === "HEAD") return void response.end();
    listen(response);
  }

  function show(next: FleetState): void {
    const hasChanged = JSON.stringify({ ...next, readAt: 0 }) !== JSON.stringify({ ...state, readAt: 0 });
    state = next;
    if (!hasChanged && performance.now() - sentAtMs < REPEAT_MS) return;
    sentAtMs = performance.now();
    for (const listener of listeners) {
      // A page that does not read what it was sent gets no more: it opens another stream.
      if (listener.writableNeedDrain) listener.destroy();
      else listener.write(frame());
    }
  }

  async function follow(): Promise<void> {
    while (!ended.signal.aborted) {
      if (listeners.size === 0) {
        wake = Promise.withResolvers();
        await Promise.race([wake.promise, once(ended.signal, "abort")]);
        continue;
      }
      const startedMs = performance.now();
      const { version, cluster } = first;
      const seen = await read().then(
        (found): FleetState => ({ ...found, version, cluster }),
        (error: unknown): FleetState => ({ ...state, trouble: describeError(error) }),
      );
      show(seen);
      await pause(Math.max(everyMs, REST * (performance.now() - startedMs)), ended.signal);
    }
  }

  const server = createServer(handle);
  const address = await listenOn(server, port);
  const following = follow();
  return {
    address: `http://${LOOPBACK}:${address.port}`,
    close: async (): Promise<void> => {
      ended.abort();
      for (const listener of listeners) listener.destroy();
      server.closeAllConnections();
      server.close();
      await following;
    },
  };
}

async function listenOn(server: ReturnType<typeof createServer>, port: number): Promise<AddressInfo> {
  try {
    const listening = once(server, "listening");
    server.listen(port, LOOPBACK);
    await listening;
  } catch (error) {
    const why =
      errorCode(error) === "EADDRINUSE"
        ? "another program listens there already: choose another port with --port, or any free one with --port=0"
        : describeError(error);
    throw new Error(`cannot listen on ${LOOPBACK}:${port}: ${why}`, { cause: error });
  }
  return server.address() as AddressInfo;
}

function refuse(response: ServerResponse, status: number, sentence: string): void {
  response.writeHead(status, { ...SECURITY_HEADERS, "content-type": "text/plain; charset=utf-8" }).end(`${sentence}\n`);
}
