/**
 * Runs many jobs at a time without letting a slow one hold up the rest: a job that has not ended after `patienceMs`
 * goes on beside the others and its place is given to the next.
 */
export interface PoolOptions {
  readonly places: number;
  /** As many at first; the others have to be given by speedUp(). All of them where it is left out. */
  readonly firstPlaces?: number;
  readonly patienceMs: number;
  /** Jobs that may go on beside the others. More than this many hung calls at once would be a storm. */
  readonly mostBeside: number;
}

export interface Pool {
  /** Begins the jobs in their order and gives their results in the same. Resolves when all have ended. */
  run<T>(jobs: readonly (() => Promise<T>)[]): Promise<T[]>;
  /** Waits for a place, and runs one job in it. */
  one<T>(job: () => Promise<T>): Promise<T>;
  /** Halves the places: the runtime shows that it has too much to do. Jobs under way go on. */
  slowDown(): void;
  /** Gives places more, one unless told otherwise, up to as many as there are. */
  speedUp(by?: number): void;
}

export function pool(options: PoolOptions): Pool {
  let places = Math.min(options.places, options.firstPlaces ?? options.places);
  let busy = 0;
  let beside = 0;
  const waiting: (() => void)[] = [];
  /** Held by jobs that are out of patience while too many are beside already. */
  const impatient: (() => void)[] = [];

  function admit(): void {
    while (beside < options.mostBeside && impatient.length > 0) impatient.shift()?.();
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
    function stepAside(): void {
      isBeside = true;
      beside += 1;
      busy -= 1;
    }
    const patience = setTimeout(() => {
      impatient.push(stepAside);
      admit();
    }, options.patienceMs);
    try {
      return await job();
    } finally {
      clearTimeout(patience);
      const at = impatient.indexOf(stepAside);
      if (at >= 0) impatient.splice(at, 1);
      if (isBeside) beside -= 1;
      else busy -= 1;
      admit();
    }
  }

  return {
    run: (jobs) => Promise.all(jobs.map(runOne)),
    one: runOne,
    slowDown: () => {
      places = Math.max(1, Math.floor(places / 2));
    },
    speedUp: (by = 1) => {
      places = Math.min(options.places, places + by);
      admit();
    },
  };
}
