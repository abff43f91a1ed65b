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

/** Returns undefined for an object that does not exist. */
export async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  const answer = await orKubeError(asking);
  if (!(answer instanceof KubeError)) return answer;
  if (answer.kind === "not-found") return undefined;
  throw answer;
}
