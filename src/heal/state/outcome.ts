/** Why something was not done: what was tried and seen, and what the operator can do about it. */
export interface Refusal {
  readonly message: string;
  readonly next: string;
  readonly kind?: RefusalKind;
}

/** A temporary refusal, for retries: another run is active, or there is no space for the journal. */
export type RefusalKind = "lock" | "disk";

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

export function ok<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(
  message: string,
  next: string,
  kind?: RefusalKind,
): { readonly ok: false; readonly refusal: Refusal } {
  return { ok: false, refusal: kind === undefined ? { message, next } : { message, next, kind } };
}
