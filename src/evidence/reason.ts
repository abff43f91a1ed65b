/** Why something is kept, skipped, refused or failed: a stable code, which users script against, and a sentence. Made where it is decided. */
export interface Reason<Code extends string = string> {
  readonly code: Code;
  readonly text: string;
}

export function reason<const Code extends string>(code: Code, text: string): Reason<Code> {
  return { code, text };
}
