/** Why something was not done: what was tried and seen, and what the person at the keyboard can do about it. */
export interface Refusal {
  readonly message: string;
  readonly next: string;
}

export type Outcome<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal };

export function ok<T>(value: T): Outcome<T> {
  return { ok: true, value };
}

export function refuse(message: string, next: string): { readonly ok: false; readonly refusal: Refusal } {
  return { ok: false, refusal: { message, next } };
}
