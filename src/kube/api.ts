import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import { byteCollector } from "../host/bytes.ts";
import { parseJson } from "../host/text.ts";
import {
  type Answer,
  type ApiAccess,
  type Asked,
  type Connection,
  connect,
  isTokenSafe,
  nameOf,
  type ReceiveLimits,
} from "./access.ts";
import { KubeError, type KubeErrorKind } from "./errors.ts";

/**
 * A client of one API server, with one timeout for all its requests. Writes are never retried: the caller names the
 * version of the object, and decides what a conflict means.
 */
export type Api = ReturnType<typeof openApi>;

/** A limit for several responses together; throws when it is exceeded. */
export interface ByteBudget {
  spend(bytes: number): void;
}

export interface WatchOptions {
  readonly accept?: string;
  /** Called when the server has accepted the watch: on a quiet one the first event may be minutes away. */
  readonly onOpen?: () => void;
}

const PATCH_TYPES = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  json: "application/json-patch+json",
} as const;
export type PatchKind = keyof typeof PATCH_TYPES;

export interface ApiLimits extends ReceiveLimits {
  readonly timeoutMs: number;
}

const JSON_TYPE = "application/json";
/** Server-side apply. JSON is YAML. */
const APPLY_TYPE = "application/apply-patch+yaml";
/** Other fields of an object belong to others; those that unghost applies are its own, also if another manager wrote them before. */
const AS_OWNER = "?fieldManager=unghost&force=true";

export function openApi(access: ApiAccess, { timeoutMs, ...limits }: ApiLimits) {
  const connection = connect(access, limits);
  // The rest of a caller's time may have a fraction, and Node's timers need an integer.
  const deadline: Deadline = {
    signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
    endsAt: performance.now() + timeoutMs,
  };

  async function write(
    method: "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body: unknown,
    type: string = JSON_TYPE,
  ): Promise<unknown> {
    const content = { type, body: JSON.stringify(body) };
    return understand(await connection.ask({ method, path, content }, deadline.signal), path, access);
  }

  /** Watch events of a list. There is no timeout except for the signal. */
  async function* watch(
    path: string,
    signal: AbortSignal,
    { accept = JSON_TYPE, onOpen }: WatchOptions = {},
  ): AsyncIterable<WatchEvent> {
    const asked: Asked = { method: "GET", path: `${path}${path.includes("?") ? "&" : "?"}watch=true`, accept };
    const answer = await connection.follow(asked, signal);
    if ("status" in answer) throw refusal(answer, path, access);
    onOpen?.();
    yield* watchEvents(answer);
  }

  /** A text that the server sends as it grows, such as a container's log. */
  async function* stream(path: string, signal: AbortSignal): AsyncIterable<Buffer> {
    const ends = AbortSignal.any([deadline.signal, signal]);
    const answer = await connection.follow({ method: "GET", path, accept: "*/*" }, ends);
    if ("status" in answer) throw refusal(answer, path, access);
    yield* answer;
  }

  return {
    /** Counts the received bytes against the budget, if there is one. */
    get: async (path: string, accept: string = JSON_TYPE, budget?: ByteBudget) => {
      const answer = await withOneRetry(connection, { method: "GET", path, accept }, deadline);
      budget?.spend(answer.body.length);
      return understand(answer, path, access);
    },
    create: (path: string, body: unknown) => write("POST", path, body),
    replace: (path: string, body: unknown) => write("PUT", path, body),
    patch: (path: string, body: unknown, kind: PatchKind) => write("PATCH", path, body, PATCH_TYPES[kind]),
    /** Creates the object, or makes its fields those of the body. */
    apply: (path: string, body: unknown) => write("PATCH", `${path}${AS_OWNER}`, body, APPLY_TYPE),
    delete: (path: string, options: unknown) => write("DELETE", path, options),
    watch,
    stream,
    close: () => connection.close(),
  };
}

/** Reads one object; `kind` completes the message about an answer of another structure: "is no …". */
export async function getObject<T>(
  api: Api,
  path: string,
  schema: v.GenericSchema<unknown, T>,
  kind: string,
  query = "",
): Promise<T> {
  const result = v.safeParse(schema, await api.get(`${path}${query}`), FIRST_ISSUE);
  if (!result.success) throw new KubeError("unreadable", `the API server's answer to ${path} is no ${kind}`);
  return result.output;
}

/** Why an answer has another structure does not matter: a list without one right item would have millions of reasons. */
export const FIRST_ISSUE = { abortEarly: true } as const;

/** From the server's cache. */
export const CACHED = "?resourceVersion=0";

interface Deadline {
  readonly signal: AbortSignal;
  readonly endsAt: number;
}

const BACK_OFF_MS = 300;

/** An overloaded or starting server answers 429 or 503: one retry, after its Retry-After or a short delay. */
async function withOneRetry(connection: Connection, asked: Asked, deadline: Deadline): Promise<Answer> {
  const first = await connection.ask(asked, deadline.signal);
  if (first.status !== 429 && first.status < 500) return first;
  const waitMs = first.retryAfter === undefined ? BACK_OFF_MS * (1 + Math.random()) : first.retryAfter * 1000;
  if (performance.now() + waitMs >= deadline.endsAt) return first;
  await sleep(waitMs);
  return await connection.ask(asked, deadline.signal);
}

function understand(answer: Answer, path: string, access: ApiAccess): unknown {
  if (answer.status < 200 || answer.status > 202) throw refusal(answer, path, access);
  try {
    return JSON.parse(answer.body);
  } catch (error) {
    throw new KubeError(
      "unreadable",
      `${nameOf(access)} answered ${pathOf(path)} with something that is not JSON`,
      error,
    );
  }
}

function refusal({ status, body, retryAfter }: Answer, path: string, access: ApiAccess): KubeError {
  const detail = statusMessage(body);
  const hint = status === 401 || status === 403 ? `${expiryHint(access)}${withheldHint(access)}` : "";
  const message = `${nameOf(access)} answered ${status} to ${pathOf(path)}${detail ? `: ${detail}` : ""}${hint}`;
  return new KubeError(kindOf(status), message, undefined, retryAfter);
}

function pathOf(path: string): string {
  return path.split("?", 1)[0] ?? path;
}

function kindOf(status: number): KubeErrorKind {
  if (status === 401) return "unauthorized";
  if (status === 403) return "forbidden";
  if (status === 404) return "not-found";
  if (status === 409) return "conflict";
  if (status === 410) return "expired";
  return status === 429 || status >= 500 ? "busy" : "unreadable";
}

const StatusSchema = v.object({ message: v.string() });
const LONGEST_MESSAGE = 300;

/** API servers explain an error in a Status object; a proxy in front of them may return anything. */
function statusMessage(body: string): string {
  const status = v.safeParse(StatusSchema, parseJson(body));
  // Otherwise only the status code is known.
  return status.success ? status.output.message.slice(0, LONGEST_MESSAGE) : "";
}

function withheldHint(access: ApiAccess): string {
  if (access.token === undefined || isTokenSafe(access)) return "";
  return "; the token was not sent, because the server's certificate is not verified: use https, name its certificate-authority and remove insecure-skip-tls-verify";
}

function expiryHint({ certificate }: ApiAccess): string {
  if (certificate === undefined || certificate.expiresAt.getTime() > Date.now()) return "";
  return `; the client certificate expired at ${certificate.expiresAt.toISOString()}`;
}

/** One line of a watch. Of a bookmark only the resourceVersion is used; the object of an error is a Status. */
const WatchEventSchema = v.object({
  type: v.picklist(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]),
  object: v.unknown(),
});
export type WatchEvent = v.InferOutput<typeof WatchEventSchema>;

/** etcd accepts no object above 1.5 MB, so a JSON line is always shorter than this. */
const LONGEST_LINE = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

/** Splits lines as bytes, because a chunk may end within a character. */
export async function* watchEvents(
  chunks: AsyncIterable<Buffer>,
  longestLine: number = LONGEST_LINE,
): AsyncGenerator<WatchEvent> {
  const piece = byteCollector();
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      piece.add(chunk.subarray(from, end));
      const line = piece.take().toString("utf8");
      from = end + 1;
      if (line.trim() !== "") yield parse(line);
    }
    piece.add(chunk.subarray(from));
    if (piece.size() > longestLine)
      throw new KubeError("unreadable", `the watch sent a line longer than ${longestLine} bytes`);
  }
}

function parse(line: string): WatchEvent {
  const event = v.safeParse(WatchEventSchema, parseJson(line));
  if (event.success) return event.output;
  throw new KubeError("unreadable", "the watch sent a line that is no event");
}
