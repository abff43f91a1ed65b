interface PaceOptions {
  /** Interval of the periodic full scan (fallback for missed events). */
  readonly scanEveryMs: number;
  /** 0 ≤ x < 1, as Math.random. */
  readonly random: () => number;
}

export type Pace = ReturnType<typeof openPace>;

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

/** The maximum of timers. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Decides when to scan next. Hints may come in bursts, scans may not. */
export function openPace(options: PaceOptions) {
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
    /** Requests a scan soon. `now` is for events that cannot come in bursts. */
    hint: (urgency: "soon" | "now" = "soon"): void => {
      const atMs = performance.now() + (urgency === "now" ? 0 : DEBOUNCE_MS);
      if (hintedAtMs === undefined || atMs < hintedAtMs) askFor(atMs);
    },
    /** Requests a scan at that time, by performance.now(). The earliest counts. */
    dueAt: (atMs: number): void => {
      if (dueMs !== undefined && dueMs <= atMs) return;
      dueMs = atMs;
      wake?.();
    },
    /** A scan has ended and used this much CPU time. */
    scanned: (cpuMs: number): void => {
      budget = { ms: budgetNow() - cpuMs, atMs: performance.now() };
      failures = 0;
      netAtMs = performance.now() + jittered(scanEveryMs, options.random);
    },
    /** A scan failed: the next one waits, with a growing back-off. */
    failed: (): void => {
      failures++;
      notBeforeMs = performance.now() + Math.min(FIRST_BACK_OFF_MS * 2 ** (failures - 1), LONGEST_BACK_OFF_MS);
    },
    scanEvery: (milliseconds: number): void => {
      if (milliseconds === scanEveryMs) return;
      scanEveryMs = milliseconds;
      netAtMs = Math.min(netAtMs, performance.now() + milliseconds);
      wake?.();
    },
    /** Settles when the next scan is due, or when the signal is aborted. Returns whether a hint caused it. */
    wait: async (signal: AbortSignal): Promise<{ readonly hinted: boolean }> => {
      while (!signal.aborted) {
        const ms = nextAtMs() - performance.now();
        if (ms <= 0) break;
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = () => resolve();
        const timer = setTimeout(wake, Math.min(ms, LONGEST_TIMER_MS));
        signal.addEventListener("abort", wake);
        await promise;
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
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
