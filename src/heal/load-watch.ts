export interface LoadWatch {
  /** Takes how long the runtime needed for one removal or stop that it completed. */
  took(milliseconds: number): void;
}

/** What is called when the runtime has too much to do, and when it has recovered. */
export interface LoadReaction {
  readonly slowDown: () => void;
  readonly speedUp: () => void;
}

/** Few enough to react within seconds, enough that a single slow one does not count. */
const WINDOW = 5;
/** Well beyond what the first ones took. */
const TOO_MANY_TIMES = 4;
/** Below this nobody is waiting for anybody, whatever the first ones took. */
const NEVER_SLOW_MS = 250;

/** Compares how long the runtime takes with how long it took at first, a window of calls at a time. */
export function loadWatch({ slowDown, speedUp }: LoadReaction): LoadWatch {
  let usual: number | undefined;
  let window: number[] = [];
  return {
    took: (milliseconds) => {
      window.push(milliseconds);
      if (window.length < WINDOW) return;
      const now = median(window);
      window = [];
      if (usual === undefined) usual = now;
      else if (now > Math.max(NEVER_SLOW_MS, TOO_MANY_TIMES * usual)) slowDown();
      else speedUp();
    },
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;
}
