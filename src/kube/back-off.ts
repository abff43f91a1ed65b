import type { KubeError } from "./kube-error.ts";

interface BackOff {
  readonly firstMs: number;
  readonly longestMs: number;
  /** The part of a pause that is left to chance. */
  readonly jitter: number;
}

/** Of a watch that ended: without it the agent is blind. */
const WATCH: BackOff = { firstMs: 500, longestMs: 30_000, jitter: 0.5 };
/** Of what the agent publishes: it can wait. */
const PUBLISH: BackOff = { firstMs: 6250, longestMs: 375_000, jitter: 0.2 };
/** Credentials that may not do it seldom learn it. */
const FORBIDDEN_MS = 30 * 60_000;
/** An API server that has just started forbids everything until it has read its roles: that passes within seconds. */
const FORBIDDEN_FOR_GOOD = 4;

type Refusal = Pick<KubeError, "kind" | "retryAfterSeconds">;

/** How long to leave the API alone before another watch, after this many failures in a row. */
export function watchBackOffMs(failures: number, refusal?: Refusal): number {
  return backOffMs(failures, WATCH, refusal, Math.random);
}

/** How long to leave the API alone after each write in turn; `undefined` is one that succeeded. */
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

/** Twice as long each time, after any Retry-After, never all clients at once. */
function backOffMs(failures: number, backOff: BackOff, refusal: Refusal | undefined, random: () => number): number {
  const longest = Math.min(backOff.firstMs * 2 ** failures, backOff.longestMs);
  return (refusal?.retryAfterSeconds ?? 0) * 1000 + longest * (1 - backOff.jitter * (1 - random()));
}
