/**
 * Why the cluster could not be asked.
 * - `unusable`: the credentials themselves are no good; nothing was sent.
 * - `unreachable`, `timeout`: no answer came.
 * - `unauthorized`, `forbidden`, `not-found`, `expired`: the server's own word.
 * - `conflict`: the object is not the one that was meant any more.
 * - `busy`: it asked for patience, and that was used up.
 * - `unreadable`: an answer came that makes no sense, or never ends.
 */
export type KubeErrorKind =
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
  /** How long a busy server asked to be left alone. */
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

/** Undefined for what the server does not have. */
export async function unlessMissing<T>(asking: Promise<T>): Promise<T | undefined> {
  const answer = await orKubeError(asking);
  if (!(answer instanceof KubeError)) return answer;
  if (answer.kind === "not-found") return undefined;
  throw answer;
}
