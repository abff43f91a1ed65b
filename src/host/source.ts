/**
 * What became of reading one source of facts. A source that could not be read is itself a fact: it narrows what may be
 * concluded and done, and it never turns into an exception or a guess.
 *
 * - `read`: the value is complete, apart from the entries named in `oddities`.
 * - `absent`: there is no such thing on this node (no multus, no flannel), which is ordinary.
 * - `failed`: it should have been readable and was not.
 */
export type Source<T> =
  | { readonly status: "read"; readonly value: T; readonly oddities: readonly Oddity[] }
  | { readonly status: "absent"; readonly reason: string }
  | { readonly status: "failed"; readonly error: SourceError };

/** One entry that was passed over, and why: a name that parses as nothing, a symlink where a file belongs. */
export interface Oddity {
  readonly path: string;
  readonly reason: string;
  readonly code?: string;
}

/** For people: what was tried and seen, and what to do next. */
export interface SourceError {
  readonly message: string;
  readonly next?: string;
  /** Stable: code decides by it. */
  readonly code?: string;
}

export function read<T>(value: T, oddities: readonly Oddity[] = []): Source<T> {
  return { status: "read", value, oddities };
}

export function absent<T>(reason: string): Source<T> {
  return { status: "absent", reason };
}

export function failed<T>(message: string, next?: string, code?: string): Source<T> {
  const error = { message, ...(next === undefined ? {} : { next }), ...(code === undefined ? {} : { code }) };
  return { status: "failed", error };
}

/** The value where it was read, else the fallback. For code to which "unreadable" and "absent" are the same. */
export function valueOr<T, F>(source: Source<T>, fallback: F): T | F {
  return source.status === "read" ? source.value : fallback;
}
