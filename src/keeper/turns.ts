/** Runs work as soon as one of a fixed number of slots is free. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

export function takingTurns(atOnce: number): InTurn {
  let free = atOnce;
  const queue: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await work();
    } finally {
      const next = queue.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
