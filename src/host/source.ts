/**
 * The result of reading one source of facts. A source that could not be read is itself a fact: it limits the
 * conclusions and the actions, and never becomes an exception or a guess.
 *
 * - `read`: the value is complete, apart from the entries in `oddities`.
 * - `absent`: the source does not exist on this node (no multus, no flannel), which is normal.
 * - `failed`: it should have been readable and was not.
 */
export type Source<T> =
  | { readonly status: "read"; readonly value: T; readonly oddities: readonly Oddity[] }
  | { readonly status: "absent"; readonly reason: string }
  | { readonly status: "failed"; readonly error: SourceError };

/** A skipped entry with the reason: a name that cannot be parsed, a symlink instead of a file. */
export interface Oddity {
  readonly path: string;
  readonly reason: string;
  readonly code?: string;
}

/** For operators: what was tried and seen, and the next step. */
export interface SourceError {
  readonly message: string;
  readonly next?: string;
  /** A stable code for decisions. */
  readonly code?: string;
}

export function read<T>(value: T, oddities: readonly Oddity[] = []): Source<T> {
  return { status: "read", value, oddities };
}

export function absent<T>(reason: string): Source<T> {
  return { status: "absent", reason };
}

export function failed<T>(message: string, next?: string, code?: string): Source<T> {
  const error = { message, next, code };
  return { status: "failed", error };
}

/** The value if it was read, else the fallback, for callers that do not distinguish "unreadable" and "absent". */
export function valueOr<T, F>(source: Source<T>, fallback: F): T | F {
  return source.status === "read" ? source.value : fallback;
}

/** ENOENT, EEXIST, EXDEV …, or undefined if the error did not come from the operating system. */
export function errorCode(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}

/** The code, or the class name of any other value. */
export function errorLabel(thrown: unknown): string {
  return errorCode(thrown) ?? (thrown instanceof Error ? thrown.name : "unknown error");
}

const PLAIN_WORDS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "the operation is not permitted",
  ENOENT: "there is no such file or directory",
  ENOTDIR: "a part of the path is not a directory",
  ELOOP: "a part of the path is a symbolic link",
  EIO: "the disk reports an input/output error",
  EMFILE: "too many files are open",
};

export function describeError(thrown: unknown): string {
  const code = errorCode(thrown);
  if (code !== undefined) return `${PLAIN_WORDS[code] ?? "the system refused"} (${code})`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}
