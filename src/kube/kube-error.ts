/**
 * Why the cluster could not be asked.
 * - `unusable`: the credentials themselves are no good; nothing was sent.
 * - `unreachable`, `timeout`: no answer came.
 * - `unauthorized`, `forbidden`, `not-found`, `expired`: the server's own word.
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
  | "expired"
  | "busy"
  | "unreadable";

export class KubeError extends Error {
  readonly kind: KubeErrorKind;

  constructor(kind: KubeErrorKind, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.name = "KubeError";
    this.kind = kind;
  }
}
