/**
 * - `unwatched`: no inotify watch could be had; the directory is swept every second instead.
 * - `unlisted`: its files cannot be listed. - `unsynced`: fsync failed. - `too-many`: more directories than are watched.
 */
export type KeeperProblem =
  | { readonly kind: "unwatched"; readonly dir: string }
  | { readonly kind: "unlisted"; readonly dir: string; readonly reason: string }
  | { readonly kind: "unsynced"; readonly dir: string; readonly code: string }
  | { readonly kind: "too-many"; readonly kept: number };

export interface KeeperState {
  readonly directories: number;
  /** Since its start. */
  readonly filesSynced: number;
  /** Files that changed and are not yet on disk. */
  readonly waiting: number;
  /** How long the sync under way has taken so far; 0 when there is none. */
  readonly syncingSeconds: number;
  readonly problems: readonly KeeperProblem[];
}

/** A disk that takes longer is worth a word. */
const SLOW_SECONDS = 5;

/** The keeper in one line, for `doctor` and logs; undefined: no keeper runs. */
export function describeKeeper(state: KeeperState | undefined): string {
  if (state === undefined) return "CNI files are not kept durable: no keeper runs (agent.keepDurable, or unghost keep)";
  const { directories, filesSynced, waiting, syncingSeconds, problems } = state;
  if (directories === 0) return "CNI files: no directory to keep durable yet";
  const slow =
    syncingSeconds < SLOW_SECONDS ? [] : [`the disk has taken ${Math.round(syncingSeconds)}s for one fsync so far`];
  const waits = waiting === 0 ? [] : [`${waiting} waiting`];
  const kept = `CNI files: ${directories} directories kept durable, ${filesSynced} files synced`;
  return [kept, ...waits, ...slow, ...problems.map(describeProblem)].join("; ");
}

/** Files in a directory that is swept are on disk a second later than others: worth a word, not a warning. */
export function isSerious({ kind }: KeeperProblem): boolean {
  return kind !== "unwatched";
}

export function describeProblem(problem: KeeperProblem): string {
  switch (problem.kind) {
    case "unwatched":
      return `${problem.dir} cannot be watched (fs.inotify.max_user_watches, or a mount namespace of its own): swept every second`;
    case "unlisted":
      return `${problem.dir} ${problem.reason}`;
    case "unsynced":
      return `fsync in ${problem.dir} failed (${problem.code}): check the disk`;
    case "too-many":
      return `more directories than the ${problem.kept} that are kept durable`;
  }
}
