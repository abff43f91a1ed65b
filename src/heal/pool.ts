/**
 * Runs many jobs at a time without letting a slow one hold up the rest: a job that has not ended after `patienceMs`
 * goes on beside the others and its place is given to the next. The number of places falls when jobs become slow.
 */
export interface PoolOptions {
  readonly places: number;
  readonly patienceMs: number;
  /** Jobs that may go on beside the others. More than this many hung calls at once would be a storm. */
  readonly mostBeside: number;
}

export interface Pool {
  /** Resolves when all jobs have ended. */
  run<T>(jobs: readonly (() => Promise<T>)[]): Promise<T[]>;
  /** Called when the runtime shows that it has too much to do. */
  slowDown(): void;
}

export function pool(options: PoolOptions): Pool {
  let places = options.places;
  let busy = 0;
  let beside = 0;
  const waiting: (() => void)[] = [];

  function admit(): void {
    while (busy < places && waiting.length > 0) {
      busy += 1;
      waiting.shift()?.();
    }
  }

  async function place(): Promise<void> {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      admit();
    });
  }

  async function runOne<T>(job: () => Promise<T>): Promise<T> {
    await place();
    let isBeside = false;
    const stepAside = setTimeout(() => {
      if (beside >= options.mostBeside) return;
      isBeside = true;
      beside += 1;
      busy -= 1;
      admit();
    }, options.patienceMs);
    try {
      return await job();
    } finally {
      clearTimeout(stepAside);
      if (isBeside) beside -= 1;
      else busy -= 1;
      admit();
    }
  }

  return {
    run: (jobs) => Promise.all(jobs.map(runOne)),
    slowDown: () => {
      places = Math.max(1, Math.floor(places / 2));
    },
  };
}
