import { setTimeout as sleep } from "node:timers/promises";
import { watchDirectories } from "./directory-watch.ts";
import type { KeeperProblem, KeeperState } from "./keeper-state.ts";
import { directoryFinder, type KeptRoot } from "./kept-directories.ts";
import { syncEntries } from "./sync-entries.ts";
import { waitingFiles } from "./waiting-files.ts";
import { SETTLE_MS, writebackQueue } from "./writeback-queue.ts";
import { youngFiles } from "./young-files.ts";

export interface KeeperOptions {
  /** Where plugins keep their files; asked again every second, for networks come and go. */
  readonly roots: () => readonly KeptRoot[];
  /** For each file that is on disk now: the seconds since its change was noticed. */
  readonly onSynced?: (seconds: readonly number[]) => void;
  /** What stands in the way from now on; called when that changes. */
  readonly onProblems?: (problems: readonly KeeperProblem[]) => void;
  /** It has ended with an unexpected error. */
  readonly onLost: (error: unknown) => void;
  readonly sync?: typeof syncEntries;
  readonly watch?: typeof watchDirectories;
}

/** Makes durable what CNI plugins write and do not sync. It only ever reads and calls fsync. */
export interface Keeper {
  state(): KeeperState;
  /** Settles when everything younger than a minute at the start is on disk. */
  readonly started: Promise<void>;
  /** Ends at once, without waiting for a disk that does not answer. */
  close(): void;
}

/** Under churn one commit serves all files of this time, and the disk is everybody else's for some of it. */
const LEAST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 200;
/** How long a directory that was made again, or cannot be watched, may go unnoticed. */
const REFRESH_MS = 1000;
/** What is noticed meanwhile waits for no more than these. */
const FILES_A_BATCH = 256;

export function openKeeper(options: KeeperOptions): Keeper {
  const sync = options.sync ?? syncEntries;
  const findDirectories = directoryFinder();
  const waiting = waitingFiles();
  const toSweep = new Set<string>();
  /** Date.now() of the last sweep of directories that have no watch. */
  const sweptAt = new Map<string, number>();
  const problems = new Map<string, KeeperProblem>();
  let reportedProblems = "";
  let directories = 0;
  let filesSynced = 0;
  let syncingSinceMs: number | undefined;
  let refreshAtMs = 0;
  let isClosed = false;
  let wake: () => void = () => undefined;

  const writeback = writebackQueue();
  /** Directories of which something was heard since the last refresh, and the times of change of all at that refresh. */
  const heardOf = new Set<string>();
  let lastChanges: ReadonlyMap<string, number> = new Map();

  const watch = (options.watch ?? watchDirectories)((dir, name) => {
    heardOf.add(dir);
    if (name === undefined) refreshAtMs = 0;
    if (name !== undefined && waiting.notice(dir, name)) writeback.notice(dir, name);
    else toSweep.add(dir);
    wake();
  });

  function refresh(): void {
    refreshAtMs = performance.now() + REFRESH_MS;
    const { changedAtMs, hasMore } = findDirectories(options.roots());
    const { fresh, unwatched } = watch.refresh([...changedAtMs.keys()]);
    directories = changedAtMs.size;
    for (const dir of [...fresh, ...unwatched, ...changedUnheard(changedAtMs)]) toSweep.add(dir);
    for (const dir of sweptAt.keys()) {
      if (!unwatched.includes(dir)) sweptAt.delete(dir);
    }
    for (const dir of unwatched) sweptAt.set(dir, sweptAt.get(dir) ?? 0);
    forgetProblems((problem) => {
      if (problem.kind === "too-many" || problem.kind === "unwatched") return true;
      return !changedAtMs.has(problem.dir);
    });
    if (hasMore) setProblem({ kind: "too-many", kept: directories });
    for (const dir of unwatched) setProblem({ kind: "unwatched", dir });
  }

  /** A watch can stop reporting without an error. */
  function changedUnheard(changedAtMs: ReadonlyMap<string, number>): readonly string[] {
    const unheard = [...changedAtMs].filter(([dir, changed]) => {
      const before = lastChanges.get(dir);
      return before !== undefined && before !== changed && !heardOf.has(dir);
    });
    lastChanges = changedAtMs;
    heardOf.clear();
    return unheard.map(([dir]) => dir);
  }

  async function sweep(): Promise<void> {
    for (const dir of toSweep) {
      toSweep.delete(dir);
      const young = await youngFiles(dir, sinceLastSweep(dir));
      forgetProblems((problem) => problem.kind === "unlisted" && problem.dir === dir);
      if (young.kind === "refused") setProblem({ kind: "unlisted", dir, reason: young.reason });
      else waiting.addSwept(dir, young.names);
    }
  }

  /** undefined: the last minute, also when the clock was set back. A second more than needed, for coarse timestamps. */
  function sinceLastSweep(dir: string): number | undefined {
    const last = sweptAt.get(dir);
    const now = Date.now();
    if (last !== undefined) sweptAt.set(dir, now);
    return last === undefined || last === 0 || last > now ? undefined : last - REFRESH_MS;
  }

  async function syncBatch(): Promise<void> {
    syncingSinceMs = performance.now();
    const batch = [...waiting.take(FILES_A_BATCH)];
    await Promise.all(batch.map(([dir, names]) => syncDirectory(dir, names)));
    syncingSinceMs = undefined;
  }

  async function syncDirectory(dir: string, names: ReadonlyMap<string, number>): Promise<void> {
    const { synced, directories: below, failed, isGone } = await sync(dir, names.keys());
    if (isClosed) return;
    if (isGone || below.length > 0) refreshAtMs = 0;
    forgetProblems((problem) => problem.kind === "unsynced" && problem.dir === dir);
    const [first] = failed;
    if (first !== undefined) setProblem({ kind: "unsynced", dir, code: first.code });
    filesSynced += synced.length;
    const now = performance.now();
    if (synced.length > 0) options.onSynced?.(synced.map((name) => (now - (names.get(name) ?? now)) / 1000));
  }

  function setProblem(problem: KeeperProblem): void {
    problems.set(`${problem.kind} ${"dir" in problem ? problem.dir : ""}`, problem);
  }

  function forgetProblems(isOver: (problem: KeeperProblem) => boolean): void {
    for (const [key, problem] of problems) {
      if (isOver(problem)) problems.delete(key);
    }
  }

  function reportProblems(): void {
    const now = [...problems.keys()].toSorted().join("\n");
    if (now === reportedProblems) return;
    reportedProblems = now;
    options.onProblems?.([...problems.values()]);
  }

  /** Milliseconds that the disk was used for. */
  async function round(): Promise<number> {
    if (performance.now() >= refreshAtMs) refresh();
    await sweep();
    const startedAt = performance.now();
    const hasFiles = waiting.size > 0;
    if (hasFiles) await syncBatch();
    reportProblems();
    return hasFiles ? performance.now() - startedAt : 0;
  }

  async function untilNoticed(): Promise<void> {
    if (waiting.size > 0 || toSweep.size > 0) return;
    const noticed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    await Promise.race([noticed, pause(Math.max(0, refreshAtMs - performance.now()))]);
    if (waiting.size > 0) await pause(SETTLE_MS);
  }

  async function syncAllYoung(): Promise<void> {
    do await round();
    while (!isClosed && waiting.size > 0);
  }

  async function run(): Promise<void> {
    while (!isClosed) {
      await untilNoticed();
      const usedMs = isClosed ? 0 : await round();
      if (usedMs > 0) await pause(Math.min(Math.max(usedMs, LEAST_PAUSE_MS), LONGEST_PAUSE_MS));
    }
  }

  const started = syncAllYoung();
  started.then(run).catch(options.onLost);
  return {
    started,
    state: () => ({
      directories,
      filesSynced,
      waiting: waiting.size,
      syncingSeconds: syncingSinceMs === undefined ? 0 : (performance.now() - syncingSinceMs) / 1000,
      problems: [...problems.values()],
    }),
    close: () => {
      isClosed = true;
      watch.close();
      writeback.close();
      wake();
    },
  };
}

function pause(milliseconds: number): Promise<void> {
  return sleep(milliseconds, undefined, { ref: false });
}
