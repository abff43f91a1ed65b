export interface PaceOptions {
  /** Interval of the periodic full scan (fallback for missed events). */
  readonly scanEveryMs: number;
  /** 0 ≤ x < 1, as Math.random. */
  readonly random: () => number;
}

/** Decides when to scan next. Hints may come in bursts, scans may not. */
export interface Pace {
  /** Requests a scan soon. `now` is for events that cannot come in bursts. */
  hint(urgency?: "soon" | "now"): void;
  /** Requests a scan at that time, by performance.now(). The earliest counts. */
  dueAt(atMs: number): void;
  /** A scan has ended and used this much CPU time. */
  scanned(cpuMs: number): void;
  /** A scan failed: the next one waits, with a growing back-off. */
  failed(): void;
  scanEvery(milliseconds: number): void;
  /** Settles when the next scan is due, or when the signal is aborted. Returns whether a hint caused it. */
  wait(signal: AbortSignal): Promise<{ readonly hinted: boolean }>;
}

/** Events come in groups: a pod that stops exits, releases its network and is deleted within moments. */
const DEBOUNCE_MS = 250;
/**
 * The long-term CPU share of scans caused by hints; together with the events the agent stays below 5 % on a node with
 * continuous pod churn.
 */
const SHARE = 0.03;
/** The CPU time that may be used at once after a quiet time, so that the first hints cause a scan without delay. */
const BURST_MS = 1000;
const JITTER = 0.2;
const FIRST_BACK_OFF_MS = 1000;
const LONGEST_BACK_OFF_MS = 60_000;

export function openPace(options: PaceOptions): Pace {
  let { scanEveryMs } = options;
  let netAtMs = 0;
  let hintedAtMs: number | undefined;
  let dueMs: number | undefined;
  let failures = 0;
  let notBeforeMs = 0;
  let wake: (() => void) | undefined;
  /** CPU time that scans caused by hints may still use; it refills over time. */
  let budget = { ms: BURST_MS, atMs: performance.now() };

  function budgetNow(): number {
    return Math.min(BURST_MS, budget.ms + (performance.now() - budget.atMs) * SHARE);
  }

  function affordableAtMs(): number {
    const left = budgetNow();
    return left > 0 ? 0 : performance.now() - left / SHARE;
  }

  function nextAtMs(): number {
    const asked = Math.min(hintedAtMs ?? Number.POSITIVE_INFINITY, dueMs ?? Number.POSITIVE_INFINITY);
    return Math.max(notBeforeMs, Math.min(netAtMs, Math.max(asked, affordableAtMs())));
  }

  function askFor(atMs: number): void {
    wake?.();
    wake = undefined;
    hintedAtMs = atMs;
  }

  return {
    hint: (urgency = "soon") => {
      const atMs = performance.now() + (urgency === "now" ? 0 : DEBOUNCE_MS);
      if (hintedAtMs === undefined || atMs < hintedAtMs) askFor(atMs);
    },
    dueAt: (atMs) => {
      if (dueMs !== undefined && dueMs <= atMs) return;
      dueMs = atMs;
      wake?.();
    },
    scanned: (cpuMs) => {
      budget = { ms: budgetNow() - cpuMs, atMs: performance.now() };
      failures = 0;
      netAtMs = performance.now() + jittered(scanEveryMs, options.random);
    },
    failed: () => {
      failures++;
      notBeforeMs = performance.now() + Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), LONGEST_BACK_OFF_MS);
    },
    scanEvery: (milliseconds) => {
      if (milliseconds === scanEveryMs) return;
      scanEveryMs = milliseconds;
      netAtMs = Math.min(netAtMs, performance.now() + milliseconds);
      wake?.();
    },
    wait: async (signal) => {
      while (!signal.aborted) {
        const ms = nextAtMs() - performance.now();
        if (ms <= 0) break;
        await sleepUnlessWoken(ms, signal, (waker) => {
          wake = waker;
        });
      }
      const hinted = hintedAtMs !== undefined;
      wake = undefined;
      hintedAtMs = undefined;
      dueMs = undefined;
      return { hinted };
    },
  };
}

function jittered(milliseconds: number, random: () => number): number {
  return milliseconds * (1 - JITTER + 2 * JITTER * random());
}

/** The maximum of timers. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

async function sleepUnlessWoken(
  milliseconds: number,
  signal: AbortSignal,
  register: (wake: () => void) => void,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  const timer = setTimeout(wake, Math.min(milliseconds, LONGEST_TIMER_MS));
  signal.addEventListener("abort", wake);
  register(wake);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", wake);
}
