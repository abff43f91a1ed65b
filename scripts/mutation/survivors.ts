/** A mutant that no test can kill, because it has no observable effect. */
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
const DEADLINE_ITSELF = "differs only in the microsecond of the deadline";
const NOT_EMPTY = "what was kept lies in the directory, which is then not empty";
const NO_DIRECTORY = "without the directory nothing lies aside";
const UNSEEN_SYNC =
  "a sync; what a power cut brings back of entries that the journal calls pruned, the next prune deletes";

export const EQUIVALENT: readonly Equivalent[] = [
  { file: "src/heal/proof/prove.ts", change: '"the runtime is not containerd" -> ""', reason: REASON_UNUSED },
  { file: "src/evidence/liveness.ts", change: '"the runtime does not run" -> ""', reason: REASON_UNUSED },
  { file: "src/evidence/liveness.ts", change: '[] -> ["Stryker was here"]', reason: NO_SUCH_ID },
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
  {
    file: "src/plan/order.ts",
    change: '"" -> "Stryker was here!"',
    reason: "no network agent or CSI plugin has such a name",
  },
  {
    file: "src/plan/obstacles.ts",
    change: 'step.kind === "quarantine-file" -> true',
    reason: "compared with are only quarantine-file and multus-marker, and the latter has no path",
  },
  { file: "src/plan/obstacles.ts", change: "unfinished.size === 0 -> false", reason: SAVES_WORK },
  {
    file: "src/plan/saved-plan.ts",
    change: String.raw`"\n" -> ""`,
    reason: "what is joined are JSON arrays, which show where they end",
  },
  {
    file: "src/evidence/pod-presence.ts",
    change: '"" -> "Stryker was here!"',
    reason: "no pod has such a namespace or name",
  },
  {
    file: "src/heal/proof/turns.ts",
    change: "impatient.shift()?.() -> impatient.shift()()",
    reason: "the loop has checked that there is one",
  },
  {
    file: "src/heal/proof/turns.ts",
    change: "waiting.shift()?.() -> waiting.shift()()",
    reason: "the loop has checked that there is one",
  },
  {
    file: "src/heal/proof/storm-brake.ts",
    change: '"no answer" -> ""',
    reason: "counted beside ids of classes, and none of them is empty",
  },
  { file: "src/heal/session.ts", change: "{ settledAs: undefined } -> {}", reason: "both are undefined" },
  {
    file: "src/heal/session.ts",
    change: "options.by === undefined -> false",
    reason: "an undefined field is not written",
  },
  {
    file: "src/heal/journal/reader.ts",
    change: 'entry.event === "resumed" -> false',
    reason: "`resumed` has no id, so no record is known under it",
  },
  {
    file: "src/heal/journal/reader.ts",
    change: '"resumed" -> ""',
    reason: "`resumed` has no id, so no record is known under it",
  },
  { file: "src/heal/journal/reader.ts", change: '"" -> "Stryker was here!"', reason: "neither is a number" },
  {
    file: "src/heal/journal/reader.ts",
    change: "{ bigint: true } -> {}",
    reason: "differs only for inode numbers beyond 2^53",
  },
  { file: "src/heal/journal/reader.ts", change: "true -> false", reason: "differs only for inode numbers beyond 2^53" },
  {
    file: "src/heal/journal/reader.ts",
    change: '[] -> ["Stryker was here"]',
    reason: "where the directory is missing, so is every file in it",
  },
  { file: "src/heal/quarantine/recover.ts", change: "parent !== undefined -> true", reason: NO_DIRECTORY },
  { file: "src/heal/quarantine/recover.ts", change: 'settled.how !== "completed" -> true', reason: NOT_EMPTY },
  { file: "src/heal/quarantine/recover.ts", change: '"completed" -> ""', reason: NOT_EMPTY },
  {
    file: "src/heal/journal/unsettled.ts",
    change: '"" -> "Stryker was here!"',
    reason: "no entry has such an event or id",
  },
  {
    file: "src/heal/journal/unsettled.ts",
    change: '[] -> ["Stryker was here"]',
    reason: "the groups of a match come after its first element",
  },
  { file: "src/heal/quarantine/inventory.ts", change: "ids.length === 0 -> false", reason: SAVES_WORK },
  { file: "src/heal/quarantine/move-away.ts", change: 'moved === "changed" -> true', reason: NOT_EMPTY },
  { file: "src/heal/quarantine/inventory.ts", change: "outcomes.length > 0 -> true", reason: UNSEEN_SYNC },
  { file: "src/heal/quarantine/inventory.ts", change: "outcomes.length > 0 -> false", reason: UNSEEN_SYNC },
  {
    file: "src/heal/quarantine/inventory.ts",
    change: "outcomes.length > 0 -> outcomes.length >= 0",
    reason: UNSEEN_SYNC,
  },
  {
    file: "src/heal/quarantine/inventory.ts",
    change: "outcomes.length > 0 -> outcomes.length <= 0",
    reason: UNSEEN_SYNC,
  },
  {
    file: "src/host/poll.ts",
    change: "performance.now() < deadline -> performance.now() <= deadline",
    reason: DEADLINE_ITSELF,
  },
  {
    file: "src/heal/steps/processes.ts",
    change: "waitedMs >= waits.kubeletMs -> waitedMs > waits.kubeletMs",
    reason: DEADLINE_ITSELF,
  },
  { file: "src/heal/steps/files.ts", change: '"keep" -> ""', reason: "identifyFile has refused a link before" },
  {
    file: "src/heal/steps/networks.ts",
    change: '"/" -> ""',
    reason: "a child process unlinks the file instead, with the same result",
  },
  {
    file: "src/heal/steps/networks.ts",
    change: 'tools.hostRoot !== "/" -> true',
    reason: "a child process unlinks the file instead, with the same result",
  },
  {
    file: "src/heal/steps/networks.ts",
    change: '"" -> "Stryker was here!"',
    reason: "no namespace has such a name, and splitting a string always gives a first part",
  },
  { file: "src/heal/steps/processes.ts", change: "true -> false", reason: "the poll ends with any value" },
  {
    file: "src/heal/steps/processes.ts",
    change: "{ id: step.sandboxId } -> {}",
    reason: "the id is searched for in the answer; only more is listed",
  },
  {
    file: "src/heal/steps/processes.ts",
    change: '[] -> ["Stryker was here"]',
    reason: "what has neither an id nor a pid matches nothing",
  },
  {
    file: "src/heal/steps/processes.ts",
    change: 'comparePidNamespace(hostRoot).kind !== "own" -> false',
    reason: "a foreign namespace was refused before, and a process does not change its own",
  },
  {
    file: "src/heal/steps/processes.ts",
    change: "stat?.startedSecondsAfterBoot -> stat.startedSecondsAfterBoot",
    reason: "the line that the kernel writes always parses",
  },
  {
    file: "src/heal/steps/processes.ts",
    change: '"end-process" -> ""',
    reason: "endProcess does not read the kind of its step",
  },
  {
    file: "src/heal/steps/pods.ts",
    change: '"" -> "Stryker was here!"',
    reason: "containers without a name share one, whatever it is",
  },
  { file: "src/heal/steps/pods.ts", change: '"exited" -> ""', reason: "of the states only `unknown` counts as lost" },
  { file: "src/heal/steps/pods.ts", change: '"none" -> ""', reason: "nothing asks for this one" },
  {
    file: "src/heal/steps/pods.ts",
    change: "known.createdAt < container.createdAt -> known.createdAt <= container.createdAt",
    reason: "no two containers of one name are created in the same nanosecond",
  },
  {
    file: "src/heal/steps/files.ts",
    change: "stats.size > MAX_BINARY_BYTES -> stats.size >= MAX_BINARY_BYTES",
    reason: "differs only for a binary of exactly 256 MiB",
  },
  {
    file: "src/heal/steps/files.ts",
    change: '"follow" -> ""',
    reason: "a link at the end is followed unless it is to be kept",
  },
  {
    file: "src/heal/steps/networks.ts",
    change: 'file.kind !== "content" -> false',
    reason: "what is no content has no text, and no text is a corrupt result",
  },
  {
    file: "src/heal/steps/files.ts",
    change: "at < 0 -> at <= 0",
    reason: "a binary begins with its header, not with the path of a module",
  },
  { file: "src/heal/steps/sandboxes.ts", change: '"" -> "Stryker was here!"', reason: "neither is an absolute path" },
  { file: "src/heal/steps/networks.ts", change: '[] -> ["Stryker was here"]', reason: "no pod has such an address" },
];
