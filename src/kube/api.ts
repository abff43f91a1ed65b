import { setTimeout as sleep } from "node:timers/promises";
import * as v from "valibot";
import type { ApiAccess } from "./access.ts";
import { type Answer, type Connection, connect } from "./answer.ts";
import { KubeError, type KubeErrorKind } from "./kube-error.ts";

/** Speaks with one API server until a deadline that all its requests share. */
export interface Api {
  get(path: string, accept?: string): Promise<unknown>;
  /** Asked once and never again: whoever deletes says on which version of the object. */
  delete(path: string, options: unknown): Promise<unknown>;
  close(): void;
}

export interface ApiLimits {
  readonly timeoutMs: number;
  readonly maxBytes?: number;
}

const JSON_ACCEPT = "application/json";

export function openApi(access: ApiAccess, { timeoutMs, maxBytes }: ApiLimits): Api {
  const connection = connect(access, maxBytes);
  const deadline: Deadline = { signal: AbortSignal.timeout(timeoutMs), endsAt: performance.now() + timeoutMs };
  return {
    get: async (path, accept = JSON_ACCEPT) =>
      understand(await patiently(connection, path, accept, deadline), path, access),
    delete: async (path, options) => understand(await connection.delete(path, options, deadline.signal), path, access),
    close: () => connection.close(),
  };
}

interface Deadline {
  readonly signal: AbortSignal;
  readonly endsAt: number;
}

const BACK_OFF_MS = 300;

/** A server that is overloaded or starting up says so: it is asked once more, after as long as it wants or a moment. */
async function patiently(connection: Connection, path: string, accept: string, deadline: Deadline): Promise<Answer> {
  const first = await connection.get(path, accept, deadline.signal);
  if (first.status !== 429 && first.status < 500) return first;
  const waitMs = first.retryAfter === undefined ? BACK_OFF_MS * (1 + Math.random()) : first.retryAfter * 1000;
  if (performance.now() + waitMs >= deadline.endsAt) return first;
  await sleep(waitMs);
  return await connection.get(path, accept, deadline.signal);
}

function understand({ status, body }: Answer, path: string, access: ApiAccess): unknown {
  const who = `the API server ${access.server.origin} (by ${access.from})`;
  const [what = path] = path.split("?");
  if (status !== 200 && status !== 202) {
    const said = statusMessage(body);
    const hint = status === 401 ? expiryHint(access) : "";
    throw new KubeError(kindOf(status), `${who} answered ${status} to ${what}${said ? `: ${said}` : ""}${hint}`);
  }
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new KubeError("unreadable", `${who} answered ${what} with something that is not JSON`, error);
  }
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

/** API servers explain a refusal in a Status object; what stands in front of them may answer anything. */
function statusMessage(body: string): string {
  try {
    const status = v.safeParse(StatusSchema, JSON.parse(body));
    return status.success ? status.output.message.slice(0, LONGEST_MESSAGE) : "";
  } catch {
    // Not JSON: then it explains nothing, and the code has to do.
    return "";
  }
}

function expiryHint({ certificate }: ApiAccess): string {
  if (certificate === undefined || certificate.expiresAt.getTime() > Date.now()) return "";
  return `; the client certificate expired at ${certificate.expiresAt.toISOString()}`;
}
