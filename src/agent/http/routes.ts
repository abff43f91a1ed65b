import type { IncomingMessage, ServerResponse } from "node:http";
import type { AgentMetrics } from "../metrics/agent-metrics.ts";
import type { PAGE } from "../page/gen/page.ts";
import { type AgentState, verdictWords } from "../state/state.ts";
import { stateJson } from "../state/state-json.ts";
import type { Watched } from "../state/store.ts";
import type { Gate } from "./credentials.ts";
import type { EventStream } from "./event-stream.ts";
import { isLoopback } from "./listen-address.ts";

export interface RouteParts {
  readonly listenHost: string | undefined;
  readonly store: Watched;
  readonly gate: Gate;
  readonly metrics: AgentMetrics;
  readonly readyWithinMs: () => number;
  readonly events: EventStream;
  readonly page: () => Promise<StatusPage>;
}

interface Answer {
  readonly status: number;
  readonly body: string | Buffer;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

const READ_ONLY = ["GET", "HEAD"];
const CHALLENGES = ['Basic realm="unghost, any user name and the token as password", charset="UTF-8"', "Bearer"];

/** Read-only: no request changes anything. */
export async function answer(parts: RouteParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.setHeader(name, value);
  const [path = "/"] = (request.url ?? "/").split("?", 1);
  const refused = await refusal(parts, request, path);
  if (refused !== undefined) return send(response, refused);
  if (path === "/api/events") return listen(parts.events, request, response);
  if (path === "/") return send(response, pageAnswer(await parts.page(), request.headers["accept-encoding"]));
  send(response, await contentOf(parts, path));
}

async function refusal(parts: RouteParts, request: IncomingMessage, path: string): Promise<Answer | undefined> {
  if (isForeignHost(parts.listenHost, request.headers.host)) {
    return text(421, "This agent listens on loopback and answers to localhost, 127.0.0.1 and [::1] only.");
  }
  if (!READ_ONLY.includes(request.method ?? "")) {
    return {
      ...text(405, "Read-only server: only GET and HEAD are supported."),
      headers: { allow: READ_ONLY.join(", ") },
    };
  }
  if (path === "/healthz" || path === "/readyz") return undefined;
  const access = await parts.gate(request.headers.authorization);
  if (access === "granted") return undefined;
  if (access !== "denied") return text(503, `Bearer token cannot be checked: ${access.closed}`);
  return { ...text(401, "Bearer token required."), headers: { "www-authenticate": CHALLENGES } };
}

async function contentOf(parts: RouteParts, path: string): Promise<Answer> {
  switch (path) {
    case "/healthz":
      return text(200, "ok");
    case "/readyz": {
      const objection = notReadyBecause(parts.store.state(), parts.readyWithinMs(), performance.now());
      return objection === undefined ? text(200, "ready") : text(503, `Not ready: ${objection}.`);
    }
    case "/metrics":
      return typed(parts.metrics.contentType, await parts.metrics.render());
    case "/api/state":
      return typed("application/json", stateJson(parts.store.state()));
    default:
      return (await explanation(path)) ?? text(404, "Not found. Try /, /metrics, /healthz, /readyz or /api/state.");
  }
}

const EXPLAIN = "/explain/";

/** The output of `unghost explain CLASS`, for the links of the page. */
async function explanation(path: string): Promise<Answer | undefined> {
  if (!path.startsWith(EXPLAIN)) return undefined;
  const { classById } = await import("../../classes/index.ts");
  const known = classById(path.slice(EXPLAIN.length));
  if (known === undefined) return undefined;
  const { renderClass } = await import("../../report/explain.ts");
  return { status: 200, body: renderClass(known, { width: 100, colour: false }) };
}

function pageAnswer(page: StatusPage, accepted: string | readonly string[] | undefined): Answer {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": pagePolicy(page),
    vary: "accept-encoding",
  };
  if (!/\bgzip\b/.test(String(accepted))) return { status: 200, body: page.html, headers };
  return { status: 200, body: Buffer.from(page.gzip, "base64"), headers: { ...headers, "content-encoding": "gzip" } };
}

function listen(events: EventStream, request: IncomingMessage, response: ServerResponse): void {
  if (request.method === "HEAD") return send(response, typed("text/event-stream", ""));
  if (!events.add(response)) send(response, text(503, "Too many event streams are open. Try again later."));
}

function text(status: number, sentence: string): Answer {
  return { status, body: `${sentence}\n` };
}

function typed(contentType: string, body: string): Answer {
  return { status: 200, body, headers: { "content-type": contentType } };
}

function send(response: ServerResponse, { status, body, headers = {} }: Answer): void {
  response.statusCode = status;
  response.setHeader("content-type", "text/plain; charset=utf-8");
  response.setHeader("content-length", Buffer.byteLength(body));
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  // The engine omits the body of a HEAD request.
  response.end(body);
}

/**
 * DNS rebinding: a web page whose name resolves to 127.0.0.1 talks to this agent as its own origin, from the browser of
 * a local user. Its name is in the Host header, so on loopback only loopback names are accepted. The port is not
 * compared, because forwarded ports differ.
 */
function isForeignHost(listenHost: string | undefined, hostHeader: string | undefined): boolean {
  if (!isLoopback(listenHost)) return false;
  // HTTP/1.0 without a Host header: no browser uses it.
  if (hostHeader === undefined) return false;
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::\d+)?$/.exec(hostHeader);
  const name = match?.[1] ?? match?.[2];
  return !isLoopback(name);
}

/** For every response. No CORS header: other origins may not read anything. */
const SECURITY_HEADERS = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
} as const;

/** The page may run its own inline script and style, show an embedded icon, and connect to its own agent. */
function pagePolicy({ scriptHashes, styleHashes }: StatusPage): string {
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

/** Why the agent is not ready: its last scan failed, or is not recent, or could not give a verdict. */
export function notReadyBecause(
  { scan, scanFailure }: AgentState,
  withinMs: number,
  nowMs: number,
): string | undefined {
  if (scanFailure !== undefined) return `the last scan failed: ${scanFailure}`;
  if (scan === undefined) return "no scan has been finished since the agent's start";
  const ageMs = nowMs - scan.endedAtMs;
  if (ageMs > withinMs) {
    return `the last scan ended ${seconds(ageMs)} s ago, and one is due within ${seconds(withinMs)} s`;
  }
  if (scan.report.verdict !== "unknown") return undefined;
  const { problem, next } = verdictWords(scan.report);
  return `${problem}. ${next.replace(/\.$/, "")}`;
}

function seconds(ms: number): number {
  return Math.round(ms / 1000);
}

export type StatusPage = typeof PAGE;

/** Loaded with the first request, because most agents never get one. */
export async function builtPage(): Promise<StatusPage> {
  return (await import("../page/gen/page.ts")).PAGE;
}
