/** A mutant that no test can kill, because it changes nothing that anybody could see. */
export interface Equivalent {
  readonly file: string;
  /** The mutated source as `original -> replacement`, on one line. */
  readonly change: string;
  readonly reason: string;
}

const NOBODY_READS = "why a source is absent is read by nobody here";
const NO_SUCH_ID = "no process, shim or task has an id that is not 64 hex digits";

export const EQUIVALENT: readonly Equivalent[] = [
  { file: "src/heal/prove.ts", change: '"the runtime is not containerd" -> ""', reason: NOBODY_READS },
  { file: "src/liveness/stored.ts", change: '"the runtime does not run" -> ""', reason: NOBODY_READS },
  { file: "src/liveness/liveness.ts", change: '[] -> ["Stryker was here"]', reason: NO_SUCH_ID },
];
