/** Limits how many jobs run at a time. A job that takes longer than `patienceMs` steps aside: its slot goes to the next. */
export interface SemaphoreOptions {
  readonly slots: number;
  readonly patienceMs: number;
  /** Jobs that may have stepped aside at a time. More hung calls than this at once would be a storm. */
  readonly mostAside: number;
}

export interface Semaphore {
  /** Waits for a slot, in the order of the calls, and runs the job in it. */
  run<T>(job: () => Promise<T>): Promise<T>;
}

export function semaphore({ slots, patienceMs, mostAside }: SemaphoreOptions): Semaphore {
  let busy = 0;
  let aside = 0;
  const waiting: (() => void)[] = [];
  /** Of jobs that are out of patience while too many have stepped aside already. */
  const impatient: (() => void)[] = [];

  function admit(): void {
    while (aside < mostAside && impatient.length > 0) impatient.shift()?.();
    while (busy < slots && waiting.length > 0) {
      busy += 1;
      waiting.shift()?.();
    }
  }

  return {
    run: async (job) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
        admit();
      });
      let isAside = false;
      function stepAside(): void {
        isAside = true;
        aside += 1;
        busy -= 1;
      }
      const patience = setTimeout(() => {
        impatient.push(stepAside);
        admit();
      }, patienceMs);
      try {
        return await job();
      } finally {
        clearTimeout(patience);
        const at = impatient.indexOf(stepAside);
        if (at >= 0) impatient.splice(at, 1);
        if (isAside) aside -= 1;
        else busy -= 1;
        admit();
      }
    },
  };
}
