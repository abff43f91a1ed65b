/**
 * Tests the water: until one call has succeeded, calls are made one at a time. One that gets no answer within the
 * patience lets the next one try, for it may hang for a reason of its own; when several in a row get none, the cause is
 * shared, and no more are made.
 */
export interface ProbeRules {
  readonly patienceMs: number;
  /** Calls without an answer, and not one success, after which the rest is not made. */
  readonly mostUnanswered: number;
}

export interface ProbeGate {
  /** Makes the call when it may be made; gives the number of unanswered calls where it was not. */
  run(call: () => Promise<void>): Promise<number | undefined>;
}

export function probeGate({ patienceMs, mostUnanswered }: ProbeRules): ProbeGate {
  let isOpen = false;
  let isProbing = false;
  let unanswered = 0;
  const waiting: (() => void)[] = [];

  function wake(): void {
    isProbing = false;
    const mayAllGo = isOpen || unanswered >= mostUnanswered;
    for (const go of waiting.splice(0, mayAllGo ? waiting.length : 1)) go();
  }

  async function probe(call: () => Promise<void>): Promise<void> {
    isProbing = true;
    let isUnanswered = false;
    const patience = setTimeout(() => {
      isUnanswered = true;
      unanswered += 1;
      wake();
    }, patienceMs);
    try {
      await call();
      isOpen = true;
    } finally {
      clearTimeout(patience);
      if (isUnanswered) unanswered -= 1;
      // Others have gone on without one that was late; only its success changes anything for them.
      if (!isUnanswered || isOpen) wake();
    }
  }

  return {
    run: async (call) => {
      while (isProbing && !isOpen && unanswered < mostUnanswered) {
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
      if (isOpen) await call();
      else if (unanswered >= mostUnanswered) return unanswered;
      else await probe(call);
      return undefined;
    },
  };
}
