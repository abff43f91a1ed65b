import type { Agent, IncomingMessage, OutgoingHttpHeaders, RequestOptions } from "node:http";
import { byteCollector } from "../host/bytes.ts";
import { JSON_LIMITS, jsonMeter } from "../host/json-meter.ts";
import { KubeError } from "./errors.ts";

/** Address, TLS settings and credentials of an API server. */
export interface ApiAccess {
  readonly server: URL;
  readonly tls: ApiTls;
  readonly token?: string;
  /** The source of the credentials, for messages. */
  readonly from: string;
  readonly certificate?: ClientCertificate;
  /** Such as those of impersonation. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Connects through a proxy, with the same TLS settings. */
  readonly agent?: Agent;
}

export interface ApiTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
  readonly insecure: boolean;
}

export interface ClientCertificate {
  readonly expiresAt: Date;
  /** Set for a kubelet's own credentials: the node name in the cluster, which may differ from the host name. */
  readonly node?: string;
}

/**
 * Any holder of the bearer token can act as unghost: it is sent only to a server with a verified certificate, never over
 * plain HTTP, and never with verification disabled.
 */
export function isTokenSafe({ server, tls }: Pick<ApiAccess, "server" | "tls">): boolean {
  return server.protocol === "https:" && !tls.insecure;
}

/**
 * The content of a file. The caller decides how the path is resolved and how much is read, because the host may be
 * mounted at another path.
 */
export type FileText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "missing" }
  | { readonly kind: "refused"; readonly reason: string };

export type ReadText = (path: string) => FileText;

/** The response of a server, whatever its status. */
export interface Answer {
  readonly status: number;
  readonly body: string;
  /** Seconds from Retry-After. */
  readonly retryAfter: number | undefined;
}

/** One request. */
export interface Asked {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly accept?: string;
  readonly content?: { readonly type: string; readonly body: string };
}

export type Connection = ReturnType<typeof connect>;

/** A node's pods are a few MB at most; a larger response would exceed the memory limit of the agent. */
const MAX_ANSWER_BYTES = 24 * 1024 * 1024;

/** Of all answers to one client, which lasts for one scan at most. */
const MAX_VALUES = 5 * JSON_LIMITS.values;

export interface ReceiveLimits {
  /** Of one answer. */
  readonly maxBytes?: number;
  /** Of all answers together: what they become may be kept. */
  readonly maxValues?: number;
}

/** Each piece costs far more than a byte until it is read; the first ones may be small. */
const [SMALL_CHUNKS, SMALL_BYTES] = [10_000, 64];

/** Before each answer; servers send one at most. */
const MAX_INFORMATIONAL = 100;

export function connect(access: ApiAccess, limits: ReceiveLimits) {
  const { maxBytes = MAX_ANSWER_BYTES, maxValues = MAX_VALUES } = limits;
  /** An answer that may be longer may have more. */
  const valuesPerAnswer = JSON_LIMITS.values * Math.max(1, maxBytes / MAX_ANSWER_BYTES);
  const isTls = access.server.protocol === "https:";
  const { ca, cert, key, serverName, insecure } = access.tls;
  const tls = { rejectUnauthorized: !insecure, ca, cert, key, servername: serverName };
  // Loaded on demand: a static import would be loaded at every start of the one-file build.
  const https = process.getBuiltinModule("node:https");
  const http = process.getBuiltinModule("node:http");
  let valuesLeft = maxValues;
  const direct = () => (isTls ? new https.Agent({ keepAlive: true, ...tls }) : new http.Agent({ keepAlive: true }));
  const agent = access.agent ?? direct();

  function send<Received>(
    { method, path, accept = "application/json", content }: Asked,
    signal: AbortSignal,
    receive: (response: IncomingMessage) => Promise<Received>,
  ): Promise<Received> {
    const headers: OutgoingHttpHeaders = {
      ...access.headers,
      accept,
      "user-agent": "unghost",
      ...(content === undefined
        ? {}
        : { "content-type": content.type, "content-length": String(Buffer.byteLength(content.body)) }),
      ...(access.token !== undefined && isTokenSafe(access) ? { authorization: `Bearer ${access.token}` } : {}),
    };
    // The server URL may have a path, as with Rancher.
    const url = new URL(`${access.server.pathname.replace(/\/$/, "")}${path}`, access.server);
    const options: RequestOptions = { method, agent, headers, signal };
    return new Promise((resolve, reject) => {
      const fail = (error: unknown): void => reject(asKubeError(error, access, signal));
      const take = (response: IncomingMessage): void => {
        receive(response).then(resolve, (error: unknown) => {
          request.destroy();
          fail(error);
        });
      };
      const request = isTls ? https.request(url, { ...options, ...tls }, take) : http.request(url, options, take);
      let informational = 0;
      request.on("information", () => {
        informational += 1;
        if (informational > MAX_INFORMATIONAL) {
          request.destroy(new KubeError("unreadable", `it sent more than ${MAX_INFORMATIONAL} informational answers`));
        }
      });
      request.once("error", fail);
      request.end(content?.body);
    });
  }

  function receiveAnswer(response: IncomingMessage): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const body = byteCollector();
      let chunks = 0;
      const meter = jsonMeter({ ...JSON_LIMITS, values: Math.floor(Math.min(valuesPerAnswer, valuesLeft)) });
      const refuse = (excess: string): void => reject(new KubeError("unreadable", `its answer ${excess}`));
      response.on("data", (chunk: Buffer) => {
        chunks += 1;
        const isTiny = chunks > SMALL_CHUNKS + body.size() / SMALL_BYTES;
        const excess = isTiny ? "comes in too many pieces of a few bytes" : meter.add(chunk);
        if (excess !== undefined) refuse(excess);
        else if (body.size() + chunk.length > maxBytes) refuse(`is larger than ${maxBytes} bytes`);
        else body.add(chunk);
      });
      response.once("error", reject);
      response.once("close", () => refuse("broke off"));
      response.once("end", () => {
        if (!response.complete) return;
        valuesLeft -= meter.count();
        const seconds = Number(response.headers["retry-after"]);
        resolve({
          status: response.statusCode ?? 0,
          body: body.take().toString("utf8"),
          retryAfter: Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined,
        });
      });
    });
  }

  async function* chunksOf(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<Buffer> {
    try {
      yield* response;
    } catch (error) {
      throw asKubeError(error, access, signal);
    }
  }

  return {
    /** The whole answer. */
    ask: (asked: Asked, signal: AbortSignal) => send(asked, signal, receiveAnswer),
    /** A streamed response without an end. An error response is returned complete. */
    follow: (asked: Asked, signal: AbortSignal) =>
      send<Answer | AsyncIterable<Buffer>>(asked, signal, async (response) =>
        response.statusCode === 200 ? chunksOf(response, signal) : await receiveAnswer(response),
      ),
    close: () => agent.destroy(),
  };
}

/** For messages. */
export function nameOf({ server, from }: ApiAccess): string {
  return `the API server ${server.origin} (by ${from})`;
}

function asKubeError(error: unknown, access: ApiAccess, signal: AbortSignal): KubeError {
  const who = nameOf(access);
  if (signal.aborted) return new KubeError("timeout", `${who} did not answer in time`, error);
  if (error instanceof KubeError) return new KubeError(error.kind, `${who}: ${error.message}`, error);
  return new KubeError("unreachable", `${who} cannot be reached: ${reasonOf(error)}`, error);
}

/** A host name with several unreachable addresses gives an error without a message. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error ? String(error.code) : error.name);
}
