import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createHttps } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import type { KeyPair } from "../../lab/stub-api/certificates.ts";

export interface Asked {
  readonly method: string | undefined;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  readonly accept: string | undefined;
  readonly contentType: string | undefined;
  /** Parsed from JSON; missing if the request has none. */
  readonly body?: unknown;
  /** Common name of the client's certificate. */
  readonly client: string | undefined;
  readonly impersonated?: { readonly user: string; readonly groups: string };
}

/** An object is answered as JSON, text as it is; or the handler writes the response. */
export type Reply =
  | { readonly status?: number; readonly headers?: Readonly<Record<string, string>>; readonly body: unknown }
  | ((response: ServerResponse) => void);

export interface StubServer {
  readonly url: string;
  readonly asked: readonly Asked[];
  readonly close: () => Promise<void>;
}

/** An API server with the test's answers, over TLS if it has a certificate. */
export async function startStub(
  answer: (asked: Asked) => Reply,
  tls?: KeyPair & { readonly ca: string },
): Promise<StubServer> {
  const asked: Asked[] = [];
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = request.method === "GET" ? "" : await text(request);
    const url = new URL(request.url ?? "/", "http://stub");
    const peer = tls === undefined ? undefined : (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
    const one: Asked = {
      method: request.method,
      path: url.pathname,
      query: url.searchParams,
      authorization: request.headers.authorization,
      accept: request.headers.accept,
      contentType: request.headers["content-type"],
      ...(body === "" ? {} : { body: JSON.parse(body) }),
      client: typeof peer === "string" ? peer : undefined,
      ...impersonationIn(request),
    };
    asked.push(one);
    const reply = answer(one);
    if (typeof reply === "function") {
      reply(response);
      return;
    }
    response.writeHead(reply.status ?? 200, { "content-type": "application/json", ...reply.headers });
    response.end(typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body));
  };
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch(() => response.destroy());
  };
  const server: Server =
    tls === undefined
      ? createHttp(listener)
      : createHttps({ ...tls, requestCert: true, rejectUnauthorized: false }, listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? "http" : "https"}://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function impersonationIn({ headers }: IncomingMessage): Pick<Asked, "impersonated"> {
  const user = headers["impersonate-user"];
  if (typeof user !== "string") return {};
  return { impersonated: { user, groups: [headers["impersonate-group"] ?? []].flat().join(", ") } };
}

export interface PodParts {
  readonly name: string;
  readonly uid: string;
  readonly namespace?: string;
  readonly node?: string;
  readonly phase?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
}

/** A pod like in an API server's answer, with some irrelevant fields. */
export function podObject({ name, uid, namespace = "default", node = "n1", phase = "Running", ...marks }: PodParts) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace, uid, resourceVersion: "321", creationTimestamp: "2026-11-15T03:21:45Z", ...marks },
    spec: {
      nodeName: node,
      restartPolicy: "Always",
      containers: [{ name: "c", image: "docker.io/local/pause:1", resources: {} }],
    },
    status: { phase, qosClass: "BestEffort", containerStatuses: [{ name: "c", ready: false, state: {} }] },
  };
}

export function listOf(items: readonly unknown[], next = "") {
  return {
    kind: "List",
    apiVersion: "v1",
    metadata: { resourceVersion: "400", ...(next === "" ? {} : { continue: next }) },
    items,
  };
}

export function statusOf(code: number, message: string): Reply {
  return { status: code, body: { kind: "Status", apiVersion: "v1", status: "Failure", code, message } };
}

export function nodeObject(name = "n1", marks: Readonly<Record<string, Readonly<Record<string, string>>>> = {}) {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { "kubernetes.io/os": "linux" }, ...marks },
    status: { nodeInfo: { machineID: "3a6f", bootID: "b-1", kubeletVersion: "v1.26.15" } },
  };
}
