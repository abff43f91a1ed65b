import { until } from "../../../lab/poll.ts";
import type { Hint, OnHint } from "../../../src/agent/triggers/triggers.ts";

const HANG_GUARD_MS = 30_000;

/** Records hints, and waits for one. */
export interface Hints {
  readonly onHint: OnHint;
  readonly all: Hint[];
  /** The next hint of this source; earlier ones are dropped. */
  next(from: string | RegExp): Promise<Hint>;
}

export function hints(): Hints {
  const all: Hint[] = [];
  return {
    all,
    onHint: (hint) => all.push(hint),
    next: (from) =>
      until(`a hint from ${from}`, HANG_GUARD_MS, () => {
        const at = all.findIndex((hint) => (typeof from === "string" ? hint.from === from : from.test(hint.from)));
        return at < 0 ? undefined : all.splice(0, at + 1).at(-1);
      }),
  };
}
