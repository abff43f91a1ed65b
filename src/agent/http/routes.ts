import type { BuiltPage } from "../../host/built-page.ts";
import { isForeignHost, isLoopback, pagePolicy, SECURITY_HEADERS } from "../../host/http-page.ts";
import type { AgentMetrics } from "../metrics/agent-metrics.ts";
import { type AgentState, verdictWords } from "../state/state.ts";
import { stateJson } from "../state/state-json.ts";
import type { Watched } from "../state/store.ts";
import type { Answer, Headers, Subscription } from "./connection.ts";
import type { Gate } from "./credentials.ts";
import type { EventStream } from "./event-stream.ts";
import type { RequestHead } from "./request-head.ts";

export interface RouteParts {
  readonly store: Watched;
  readonly gate: Gate;
  readonly metrics: AgentMetrics;
  readonly readyWithinMs: () => number;
  readonly events: EventStream;
  readonly bytes: SharedBytes;
  readonly page: () => Promise<StatusPage>;
}

export type SharedBytes = ReturnType<typeof sharedBytes>;

/** The bytes of the last text of each kind, so that clients who read slowly share them. */
export function sharedBytes() {
  const last = new Map<string, { readonly content: string; readonly bytes: Buffer }>();
  return (kind: string, content: string, encoding: BufferEncoding = "utf8"): Buffer => {
    const known = last.get(kind);
    if (known?.content === content) return known.bytes;
    const bytes = Buffer.from(content, encoding);
    last.set(kind, { content, bytes });
    return bytes;
  };
}

const PLAIN = "text/plain; charset=utf-8";
const READ_ONLY = ["GET", "HEAD"];
const CHALLENGES = ['Basic realm="unghost, any user name and the token as password", charset="UTF-8"', "Bearer"];

/** Read-only: no request changes anything. `listenHost`: where the connection was accepted. */
export async function answer(
  parts: RouteParts,
  listenHost: string | undefined,
  request: RequestHead,
): Promise<Answer | Subscription> {
  const [path = "/"] = request.target.split("?", 1);
  const { headers, ...reply } =
    (await refusal(parts, listenHost, request, path)) ?? (await contentFor(parts, request, path));
  return { ...reply, headers: { ...SECURITY_HEADERS, ...headers } };
}

async function refusal(
  parts: RouteParts,
  listenHost: string | undefined,
  { method, headers }: RequestHead,
  path: string,
): Promise<Answer | undefined> {
  if (isLoopback(listenHost) && isForeignHost(headers.get("host"))) {
    return text(421, "This agent listens on loopback and answers to localhost, 127.0.0.1 and [::1] only.");
  }
  if (!READ_ONLY.includes(method)) {
    return text(405, "Read-only server: only GET and HEAD are supported.", { allow: READ_ONLY.join(", ") });
  }
  if (path === "/healthz" || path === "/readyz") return undefined;
  const access = await parts.gate(headers.get("authorization"));
  if (access === "granted") return undefined;
  if (access !== "denied") return text(503, `Bearer token cannot be checked: ${access.closed}`);
  return text(401, "Bearer token required.", { "www-authenticate": CHALLENGES });
}

async function contentFor(parts: RouteParts, request: RequestHead, path: string): Promise<Answer | Subscription> {
  if (path === "/api/events") return changes(parts.events, request.method);
  if (path === "/") return pageAnswer(await parts.page(), parts.bytes, request.headers.get("accept-encoding"));
  if (path.startsWith(EXPLAIN) && request.headers.get("accept")?.includes("text/html") === true) {
    return (await explanationPage(parts, path)) ?? NOT_FOUND;
  }
  return await contentOf(parts, path);
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
      return typed(parts.metrics.contentType, parts.bytes(path, await parts.metrics.render()));
    case "/api/state":
      return typed("application/json", parts.bytes(path, stateJson(parts.store.state())));
    default:
      return (await explanation(path)) ?? NOT_FOUND;
  }
}

const EXPLAIN = "/explain/";
const NOT_FOUND = text(404, "Not found. Try /, /metrics, /healthz, /readyz or /api/state.");

/** The output of `unghost explain CLASS`, for the links of the page. */
async function explanation(path: string): Promise<Answer | undefined> {
  const words = path.startsWith(EXPLAIN) ? await classWords(path.slice(EXPLAIN.length)) : undefined;
  return words === undefined ? undefined : typed(PLAIN, words);
}

/** The same for a browser, in the page's style. */
async function explanationPage(parts: RouteParts, path: string): Promise<Answer | undefined> {
  const name = path.slice(EXPLAIN.length);
  const words = await classWords(name);
  if (words === undefined) return undefined;
  const { html, styleHashes } = await parts.page();
  const style = /<style>.*?<\/style>/s.exec(html)?.[0] ?? "";
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${inHtml(name)} · unghost</title>${style}`;
  const body = `<main id="page"><h1>${inHtml(name)}</h1><pre class="card">${inHtml(words)}</pre><p><a href="/">Status page</a></p></main>`;
  const plain = typed(
    "text/html; charset=utf-8",
    `<!doctype html><html lang="en"><head>${head}</head><body>${body}</body></html>`,
  );
  const policy = pagePolicy({ scriptHashes: [], styleHashes });
  return { ...plain, headers: { ...plain.headers, "content-security-policy": policy, vary: "accept" } };
}

async function classWords(name: string): Promise<string | undefined> {
  const { classNamed } = await import("../../classes/index.ts");
  const known = classNamed(name);
  if (known === undefined) return undefined;
  const { renderClass } = await import("../../report/explain.ts");
  return renderClass(known, { width: 100, colour: false });
}

function inHtml(plain: string): string {
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

function pageAnswer(page: StatusPage, bytes: SharedBytes, accepted = ""): Answer {
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": pagePolicy(page),
    vary: "accept-encoding",
  };
  if (!/\bgzip\b/.test(accepted)) return { status: 200, body: bytes("/", page.html), headers };
  const body = bytes("/ gzip", page.gzip, "base64");
  return { status: 200, body, headers: { ...headers, "content-encoding": "gzip" } };
}

function changes(events: EventStream, method: string): Answer | Subscription {
  if (!events.hasPlace()) return text(503, "Too many event streams are open. Try again later.");
  const headers = { "content-type": "text/event-stream" };
  if (method === "HEAD") return { status: 200, body: "", headers };
  return { status: 200, headers, subscribe: events.add };
}

function text(status: number, sentence: string, headers: Headers = {}): Answer {
  return { status, body: `${sentence}\n`, headers: { "content-type": PLAIN, ...headers } };
}

function typed(contentType: string, body: string | Buffer): Answer {
  return { status: 200, body, headers: { "content-type": contentType } };
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

export type StatusPage = BuiltPage;

/** Loaded with the first request, because most agents never get one. */
export async function builtPage(): Promise<StatusPage> {
  return (await import("../page/gen/page.ts")).PAGE;
}
