import { pause } from "../host/poll.ts";
import { watchDirectories } from "./directory-watch.ts";
import type { KeeperProblem, KeeperState } from "./keeper-state.ts";
import { directoryFinder, type KeptRoot } from "./kept-directories.ts";
import { SETTLE_MS, signal, syncEntries, writebackQueue } from "./sync-entries.ts";
import { waitingFiles, youngFiles } from "./waiting-files.ts";

export interface KeeperOptions {
  /** Directories with files of plugins; called every second, because networks are added and removed. */
  readonly roots: () => readonly KeptRoot[];
  /** For each file that is on disk now: the seconds since its change was noticed. */
  readonly onSynced?: (seconds: readonly number[]) => void;
  /** Called when the current problems change. */
  readonly onProblems?: (problems: readonly KeeperProblem[]) => void;
  /** Called when the keeper ended with an unexpected error. */
  readonly onLost: (error: unknown) => void;
  readonly sync?: typeof syncEntries;
  readonly watch?: typeof watchDirectories;
}

/** Syncs the files that CNI plugins write without fsync. It only reads and calls fsync. */
export interface Keeper {
  state(): KeeperState;
  /** Resolves when everything younger than a minute at the start is on disk. */
  readonly started: Promise<void>;
  /** Ends at once, without waiting for a hung disk. */
  close(): void;
}

/**
 * A sync makes the file system commit its journal, and plugins that create or delete files meanwhile wait for that, for
 * long on a slow disk. So syncs take at most a tenth of the time. Content is written back at once in any case.
 */
const PAUSE_PER_SYNC = 9;
const LEAST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 30_000;
/** How long a re-created or unwatched directory may go unnoticed. */
const REFRESH_MS = 1000;
/**
 * A pause follows each batch, so large batches finish a sweep of thousands sooner. Files noticed meanwhile wait for one
 * batch.
 */
const FILES_A_BATCH = 1024;

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
  const due = signal();
  const hasFiles = signal();

  const writeback = writebackQueue(refreshSoon);
  /** Directories with a notification since the last refresh, and the modification times of all at that refresh. */
  const reported = new Set<string>();
  let lastChanges: ReadonlyMap<string, number> = new Map();

  const watch = (options.watch ?? watchDirectories)((dir, name) => {
    reported.add(dir);
    if (name !== undefined && waiting.notice(dir, name)) {
      writeback.notice(dir, name);
      hasFiles.raise();
      return;
    }
    toSweep.add(dir);
    if (name === undefined) refreshSoon();
    else due.raise();
  });

  function refreshSoon(): void {
    refreshAtMs = 0;
    due.raise();
  }

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
      return before !== undefined && before !== changed && !reported.has(dir);
    });
    lastChanges = changedAtMs;
    reported.clear();
    return unheard.map(([dir]) => dir);
  }

  async function sweep(): Promise<void> {
    for (const dir of toSweep) {
      toSweep.delete(dir);
      const young = await youngFiles(dir, sinceLastSweep(dir));
      forgetProblems((problem) => problem.kind === "unlisted" && problem.dir === dir);
      if (young.kind === "refused") setProblem({ kind: "unlisted", dir, reason: young.reason });
      else addSwept(dir, young.names);
    }
  }

  function addSwept(dir: string, names: readonly string[]): void {
    waiting.addSwept(dir, names);
    for (const name of names) writeback.notice(dir, name);
    if (names.length > 0) hasFiles.raise();
  }

  /**
   * Undefined means the last minute, also if the clock was set back. One second more than needed, for coarse
   * timestamps.
   */
  function sinceLastSweep(dir: string): number | undefined {
    const last = sweptAt.get(dir);
    const now = Date.now();
    if (last !== undefined) sweptAt.set(dir, now);
    return last === undefined || last === 0 || last > now ? undefined : last - REFRESH_MS;
  }

  /** Returns the duration of the slowest sync. */
  async function syncBatch(): Promise<number> {
    syncingSinceMs = performance.now();
    const batch = [...waiting.take(FILES_A_BATCH)];
    const took = await Promise.all(batch.map(([dir, names]) => syncDirectory(dir, names)));
    syncingSinceMs = undefined;
    return Math.max(0, ...took);
  }

  async function syncDirectory(dir: string, names: ReadonlyMap<string, number>): Promise<number> {
    const { synced, directories: below, failed, isGone, slowestMs } = await sync(dir, names.keys());
    if (isClosed) return 0;
    if (isGone || below.length > 0) refreshSoon();
    forgetProblems((problem) => problem.kind === "unsynced" && problem.dir === dir);
    const [first] = failed;
    if (first !== undefined) setProblem({ kind: "unsynced", dir, code: first.code });
    filesSynced += synced.length;
    const now = performance.now();
    if (synced.length > 0) options.onSynced?.(synced.map((name) => (now - (names.get(name) ?? now)) / 1000));
    return slowestMs;
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

  async function refreshAndSweep(): Promise<void> {
    if (performance.now() >= refreshAtMs) refresh();
    await sweep();
    reportProblems();
  }

  /** Never waits for a sync: a directory that is created while the disk is slow is watched at once. */
  async function watchLoop(): Promise<void> {
    while (!isClosed) {
      if (toSweep.size === 0) await due.wait(Math.max(0, refreshAtMs - performance.now()));
      if (!isClosed) await refreshAndSweep();
    }
  }

  async function syncLoop(): Promise<void> {
    while (!isClosed) {
      if (waiting.size === 0) await hasFiles.wait();
      await pause(SETTLE_MS);
      if (isClosed || waiting.size === 0) continue;
      const slowestMs = await syncBatch();
      reportProblems();
      await pause(Math.min(Math.max(slowestMs * PAUSE_PER_SYNC, LEAST_PAUSE_MS), LONGEST_PAUSE_MS));
    }
  }

  async function syncAllYoung(): Promise<void> {
    while (!isClosed && waiting.size > 0) await syncBatch();
    reportProblems();
  }

  const swept = refreshAndSweep();
  const started = swept.then(syncAllYoung);
  started.then(syncLoop).catch(options.onLost);
  swept.then(watchLoop).catch(options.onLost);
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
      due.raise();
      hasFiles.raise();
    },
  };
}

/** Syncs once what changed within the last minute. Does not wait for a hung disk longer than `mostMs`. */
export async function syncYoung(roots: () => readonly KeptRoot[], mostMs: number): Promise<void> {
  const keeper = openKeeper({ roots, onLost: () => undefined });
  try {
    await Promise.race([keeper.started, pause(mostMs)]);
  } finally {
    keeper.close();
  }
}
