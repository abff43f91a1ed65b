import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { parseAddress } from "./address.ts";
import { type Asked, answer, answerUnread } from "./answer.ts";
import { statusOf } from "./api-object.ts";
import { actOut, type Mood } from "./faults.ts";
import type { Store } from "./store.ts";

export interface StubApiOptions {
  readonly store: Store;
  readonly port?: number;
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
  /** Called before each request. */
  readonly mood?: () => Mood;
  /** The only accepted token; undefined: no authentication. */
  readonly token?: () => string | undefined;
  readonly onRequest?: (line: string) => void;
  /** Real servers send them about once a minute. */
  readonly bookmarkMs?: number;
}

export interface StubApi {
  readonly url: string;
  /** Method, path and query of every request, one line each. */
  readonly requests: readonly string[];
  /** Breaks all connections, watches in the middle of a line. */
  cut(): Promise<void>;
  close(): Promise<void>;
}

/** An API server on loopback with a store of objects; it behaves like a real one wherever a client relies on it. */
export async function serveStubApi(options: StubApiOptions): Promise<StubApi> {
  const {
    store,
    port = 0,
    tls,
    mood = () => "well",
    token = () => undefined,
    onRequest,
    bookmarkMs = 60_000,
  } = options;
  const requests: string[] = [];
  const watches = new Set<ServerResponse>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://lab");
    const body = await text(request);
    const line = `${request.method} ${url.pathname}${decodeURIComponent(url.search)}`;
    requests.push(line);
    onRequest?.(line);
    if (actOut(mood(), response)) return;
    const wanted = token();
    if (wanted !== undefined && request.headers.authorization !== `Bearer ${wanted}`) {
      actOut("401", response);
      return;
    }
    const address = parseAddress(url.pathname);
    const asked: Asked = {
      method: request.method ?? "GET",
      query: url.searchParams,
      accept: request.headers.accept ?? "",
      contentType: request.headers["content-type"] ?? "",
      body: body === "" || isProtobuf(request) ? undefined : JSON.parse(body),
      bookmarkMs,
    };
    const reply = isProtobuf(request) ? answerUnread(store, address) : answer(store, address, asked);
    if (typeof reply !== "function") return send(response, reply.code, reply.body);
    watches.add(response);
    response.once("close", () => watches.delete(response));
    reply(response);
  }

  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch((error: unknown) => {
      send(response, 500, statusOf({ code: 500, reason: "InternalError", message: String(error) }));
    });
  };
  const server: Server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  // closeAllConnections() does not close those in a TLS handshake.
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${bound}`,
    requests,
    cut: async () => {
      const half = '{"type":"MODIFIED","object":{"metadata":{"na';
      await Promise.all([...watches].map((response) => new Promise((sent) => response.write(half, sent))));
      server.closeAllConnections();
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** Clients written in Go send protobuf, multus among them; they accept JSON answers. */
function isProtobuf({ headers }: IncomingMessage): boolean {
  return headers["content-type"] === "application/vnd.kubernetes.protobuf";
}

function send(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(body));
}
