/**
 * Why a request to the cluster failed.
 * - `no-credentials`: there are none; nothing was sent.
 * - `unusable`: the credentials are invalid; nothing was sent.
 * - `unreachable`, `timeout`: there was no response.
 * - `unauthorized`, `forbidden`, `not-found`, `expired`: the server's answer.
 * - `conflict`: the object has changed since it was read.
 * - `busy`: the server asked to retry later, and the retries are used up.
 * - `unreadable`: the response is invalid or too long.
 */
export type KubeErrorKind =
  | "no-credentials"
  | "unusable"
  | "unreachable"
  | "timeout"
  | "unauthorized"
  | "forbidden"
  | "not-found"
  | "conflict"
  | "expired"
  | "busy"
  | "unreadable";

export class KubeError extends Error {
  readonly kind: KubeErrorKind;
  /** The Retry-After of a busy server. */
  readonly retryAfterSeconds: number | undefined;

  constructor(kind: KubeErrorKind, message: string, cause?: unknown, retryAfterSeconds?: number) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "KubeError";
    this.kind = kind;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** For callers that continue without the answer. */
export async function orKubeError<T>(asking: Promise<T>): Promise<T | KubeError> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof KubeError) return error;
    throw error;
  }
}

/** For callers that do not distinguish a failed request and no request. */
export function unlessError<T>(answer: T | KubeError): T | undefined {
  return answer instanceof KubeError ? undefined : answer;
}

/** Returns undefined for an object that does not exist. */
export async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  const answer = await orKubeError(asking);
  if (!(answer instanceof KubeError)) return answer;
  if (answer.kind === "not-found") return undefined;
  throw answer;
}

interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
  /** The random share of a delay. */
  readonly jitter: number;
}

/** For a broken watch: without it the agent has stale data. */
const WATCH: BackOff = { firstMs: 500, longestMs: 30_000, jitter: 0.5 };
/** For a watch of a custom resource that this cluster may not have, or that this account may not read. */
const OPTIONAL: BackOff = { ...WATCH, longestMs: 600_000 };
const NOT_OFFERED: ReadonlySet<KubeErrorKind> = new Set(["not-found", "forbidden", "unreadable"]);
/** For publishing, which is not urgent. */
const PUBLISH: BackOff = { firstMs: 6250, longestMs: 375_000, jitter: 0.2 };
/** For a permanent 403: permissions rarely change. */
const FORBIDDEN_MS = 30 * 60_000;
/**
 * A starting API server answers 403 until it has loaded its roles, which takes seconds. After this many it counts as
 * permanent.
 */
const FORBIDDEN_FOR_GOOD = 4;

type Refusal = Pick<KubeError, "kind" | "retryAfterSeconds">;

/** The delay before the next watch, after this many consecutive failures. */
export function watchBackOffMs(failures: number, refusal?: Refusal): number {
  return backOffMs(failures, WATCH, refusal, Math.random);
}

export function optionalWatchBackOffMs(failures: number, refusal?: Refusal): number {
  const isOffered = refusal === undefined || !NOT_OFFERED.has(refusal.kind);
  return backOffMs(failures, isOffered ? WATCH : OPTIONAL, refusal, Math.random);
}

/** Returns the delay after each write; `undefined` is a write that succeeded. */
export function publishBackOff(random: () => number): (refusal: Refusal | undefined) => number {
  let failures = 0;
  let forbidden = 0;
  return (refusal) => {
    failures = refusal === undefined ? 0 : failures + 1;
    forbidden = refusal?.kind === "forbidden" ? forbidden + 1 : 0;
    if (refusal === undefined) return 0;
    if (forbidden >= FORBIDDEN_FOR_GOOD) return FORBIDDEN_MS;
    return backOffMs((forbidden || failures) - 1, PUBLISH, refusal, random);
  };
}

/** Doubles each time, waits at least for Retry-After, and has jitter. */
function backOffMs(failures: number, backOff: BackOff, refusal: Refusal | undefined, random: () => number): number {
  const longest = Math.min(backOff.firstMs * 2 ** failures, backOff.longestMs);
  return (refusal?.retryAfterSeconds ?? 0) * 1000 + longest * (1 - backOff.jitter * (1 - random()));
}
