import { lstatSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import * as v from "valibot";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import { provePath } from "../host/trusted-path.ts";

const StateSchema = v.object({
  directories: v.number(),
  /** Since its start. */
  filesSynced: v.number(),
  /** Changed files that are not yet on disk. */
  waiting: v.number(),
  /** The duration of the current sync; 0 if there is none. */
  syncingSeconds: v.number(),
  problems: v.pipe(
    v.array(
      v.variant("kind", [
        /** There is no inotify watch; the directory is swept every second instead. */
        v.object({ kind: v.literal("unwatched"), dir: v.string() }),
        /** Its files cannot be listed. */
        v.object({ kind: v.literal("unlisted"), dir: v.string(), reason: v.string() }),
        /** Fsync failed. */
        v.object({ kind: v.literal("unsynced"), dir: v.string(), code: v.string() }),
        /** There are more directories than watches. */
        v.object({ kind: v.literal("too-many"), kept: v.number() }),
      ]),
    ),
    v.readonly(),
  ),
});

export type KeeperState = v.InferOutput<typeof StateSchema>;
export type KeeperProblem = KeeperState["problems"][number];

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

/** In tmpfs, beside the agent's lock: gone after a reboot, and never on the disk for which the keeper waits. */
const STATE_FILE = "/run/unghost/keeper.json";
const PUBLISH_EVERY_MS = 5000;
/** A keeper that has not written for this long was killed or stopped. */
const STALE_MS = 30_000;

/** Lets `unghost doctor` read the state of this process's keeper. */
export function publishKeeper(hostRoot: string, keeper: { state(): KeeperState }): { close(): void } {
  const path = resolveOnHost(hostRoot, STATE_FILE, "keep");
  const publish = (): void => {
    try {
      writeState(path, keeper.state());
    } catch {
      // Files are still synced; doctor reports that no keeper runs.
    }
  };
  publish();
  const timer = setInterval(publish, PUBLISH_EVERY_MS).unref();
  return {
    close: () => {
      clearInterval(timer);
      rmSync(path, { force: true });
    },
  };
}

function writeState(path: string, state: KeeperState): void {
  const dir = dirname(path);
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const { uid, mode } = lstatSync(dir);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) return;
  writeFileSync(`${path}.new`, JSON.stringify(state), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Returns undefined if no keeper runs on this node. The file must be writable by root only. */
export function publishedKeeper(hostRoot: string): KeeperState | undefined {
  if (provePath(hostRoot, STATE_FILE).kind !== "trusted") return undefined;
  const file = readRegularFile(resolveOnHost(hostRoot, STATE_FILE, "keep"));
  if (file.kind !== "content" || Math.abs(Date.now() - file.modifiedAt.getTime()) > STALE_MS) return undefined;
  const state = v.safeParse(StateSchema, parseJson(file.text));
  return state.success ? state.output : undefined;
}
