/**
 * - `unwatched`: there is no inotify watch; the directory is swept every second instead.
 * - `unlisted`: its files cannot be listed. - `unsynced`: fsync failed. - `too-many`: there are more directories than
 *   watches.
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
  /** Changed files that are not yet on disk. */
  readonly waiting: number;
  /** The duration of the current sync; 0 if there is none. */
  readonly syncingSeconds: number;
  readonly problems: readonly KeeperProblem[];
}

/** A slower disk is reported. */
const SLOW_SECONDS = 5;

/** The keeper in one line, for `doctor` and logs; undefined if no keeper runs. */
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

/** Files in a swept directory are on disk a second later than others: reported, but not as a warning. */
export function isSerious({ kind }: KeeperProblem): boolean {
  return kind !== "unwatched";
}

export function describeProblem(problem: KeeperProblem): string {
  switch (problem.kind) {
    case "unwatched":
      return `${problem.dir} cannot be watched (fs.inotify.max_user_watches, or a separate mount namespace): swept every second`;
    case "unlisted":
      return `${problem.dir} ${problem.reason}`;
    case "unsynced":
      return `fsync in ${problem.dir} failed (${problem.code}): check the disk`;
    case "too-many":
      return `more directories than the ${problem.kept} that are kept durable`;
  }
}
