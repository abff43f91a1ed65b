/** A mutant that no test can kill, because it changes nothing that anybody could see. */
export interface Equivalent {
  readonly file: string;
  /** The mutated source as `original -> replacement`, on one line. */
  readonly change: string;
  readonly reason: string;
}

const REASON_UNUSED = "nothing here reads why a source is absent";
const SAVES_WORK = "only saves work";
const NEVER_NEWEST = "a zero time is older than any other";
const NO_SUCH_ID = "no process, shim or task has an id that is not 64 hex digits";

export const EQUIVALENT: readonly Equivalent[] = [
  { file: "src/heal/execution/prove.ts", change: '"the runtime is not containerd" -> ""', reason: REASON_UNUSED },
  { file: "src/liveness/stored.ts", change: '"the runtime does not run" -> ""', reason: REASON_UNUSED },
  { file: "src/liveness/liveness.ts", change: '[] -> ["Stryker was here"]', reason: NO_SUCH_ID },
  { file: "src/plan/policy.ts", change: "createdAt !== ZERO_TIME -> true", reason: NEVER_NEWEST },
  {
    file: "src/plan/policy.ts",
    change: "sandboxes.filter(({ createdAt }) => createdAt !== ZERO_TIME) -> sandboxes",
    reason: NEVER_NEWEST,
  },
  { file: "src/plan/order.ts", change: '[] -> ["Stryker was here"]', reason: "no driver has such a directory" },
  { file: "src/plan/order.ts", change: "missing.size === 0 -> false", reason: SAVES_WORK },
  { file: "src/plan/order.ts", change: "waits.length === 0 -> false", reason: "the same action is copied" },
  {
    file: "src/plan/order.ts",
    change: 'subject.type !== "sandbox" -> false',
    reason: "what is no sandbox has none that could mount anything",
  },
  { file: "src/plan/plan.ts", change: "default: return []; -> default:", reason: "rung 0 was left alone before" },
  { file: "src/plan/obstacles.ts", change: "unfinished.size === 0 -> false", reason: SAVES_WORK },
  {
    file: "src/plan/obstacles.ts",
    change: 'mode === "automatic" -> true',
    reason: "the class that these findings borrow is treated automatically",
  },
];
