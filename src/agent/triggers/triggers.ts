import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { posix } from "node:path";
import { couldConcernSandboxes } from "../../classes/index.ts";
import { watchDirectories } from "../../durable/directory-watch.ts";
import { placesAt } from "../../host/distributions.ts";
import { resolveOnHost } from "../../host/paths.ts";
import { valueOr } from "../../host/source.ts";
import type { Snapshot } from "../../node/types/snapshot.ts";
import { watchDaemonsBack } from "./daemons-back.ts";
import { followJournald } from "./journald.ts";
import { followRuntime } from "./runtime-events.ts";

export interface TriggersOptions {
  readonly hostRoot: string;
  readonly cniCacheDir: string;
  /** The current socket of the runtime; undefined while none is found. */
  readonly findSocket: () => Promise<string | undefined>;
  readonly onHint: OnHint;
  /** Network calls waited for this, and it works again. */
  readonly onDaemonBack: (what: string) => void;
  /** What is unavailable to a trigger, and why. */
  readonly warn: (message: string, detail: string) => void;
  /** A trigger has ended with an unexpected error. The periodic scan continues. */
  readonly onLost: (error: unknown) => void;
}

/** All sources of hints on the node itself. */
export function openTriggers({ findSocket, onHint, onDaemonBack, warn, onLost, ...where }: TriggersOptions) {
  const stop = new AbortController();
  // A directory that cannot be watched gives no hints: the periodic scan covers it.
  const directories = watchDirectories((dir) => onHint({ from: `files in ${dir}`, urgency: "soon" }));
  const logs = watchLogFiles(onHint);
  const journal = followJournald({ hostRoot: where.hostRoot, onHint, warn, onLost });
  const daemons = watchDaemonsBack({
    hostRoot: where.hostRoot,
    onBack: (what) => {
      onDaemonBack(what);
      onHint({ from: `${what} is back`, urgency: "now" });
    },
  });
  followRuntime({ findSocket, onHint, signal: stop.signal }).catch(onLost);
  const onHost = (path: string): string => resolveOnHost(where.hostRoot, path, "follow");
  return {
    /** Called with the snapshot of each scan, because the watched paths depend on it. */
    saw: (snapshot: Snapshot): void => {
      const { cni, runtime } = snapshot;
      const { endpoint } = runtime;
      daemons.saw(snapshot);
      const { logFiles, units } = placesAt(endpoint);
      const multus = valueOr(cni.multus, undefined)?.dir;
      const networks = valueOr(cni.hostLocal, []).map(({ dir }) => dir);
      const own = ["results", "flannel", "networks"].map((name) => posix.join(where.cniCacheDir, name));
      directories.refresh([...own, ...networks, ...(multus === undefined ? [] : [multus])].map(onHost));
      logs.refresh(logFiles.map(onHost));
      // While no runtime is found, the units to follow are unknown.
      if (endpoint !== "") journal.refresh(units);
    },
    close: (): void => {
      stop.abort();
      daemons.close();
      directories.close();
      logs.close();
      journal.close();
    },
  };
}

/**
 * A possible change of the node. A trigger only hints that a scan is due; the scan decides. So no trigger needs to be
 * complete or correct, and all of them are optional.
 */
export interface Hint {
  /** Which trigger it was, for the log. */
  readonly from: string;
  /** `now`: no more hints of its kind follow that would be worth waiting for. */
  readonly urgency: "soon" | "now";
}

export type OnHint = (hint: Hint) => void;

interface Position {
  readonly identity: string;
  readonly size: number;
}

/** A log is checked once a second, however fast it grows. */
const EVERY_MS = 1000;
/** Only the newest part of a flood is read, because it repeats itself. */
const MAX_BYTES = 64 * 1024;

/** Follows logs that are their own files. */
export function watchLogFiles(onHint: OnHint) {
  const positions = new Map<string, Position | undefined>();

  function check(path: string): void {
    const before = positions.get(path);
    const { now, text } = readNew(path, before);
    positions.set(path, now);
    // The first scan has read what was written earlier.
    if (before !== undefined && text.split("\n").some(couldConcernSandboxes)) {
      onHint({ from: `lines in ${path}`, urgency: "soon" });
    }
  }

  const timer = setInterval(() => {
    for (const path of positions.keys()) check(path);
  }, EVERY_MS);
  timer.unref();
  return {
    /** Sets what to follow. Cheap: called after every scan. */
    refresh: (paths: readonly string[]): void => {
      for (const path of positions.keys()) {
        if (!paths.includes(path)) positions.delete(path);
      }
      for (const path of paths) {
        if (!positions.has(path)) check(path);
      }
    },
    close: (): void => clearInterval(timer),
  };
}

const NOTHING = { now: undefined, text: "" } as const;

/** The content since the position; a replaced or truncated file is new from its start. */
function readNew(path: string, before: Position | undefined) {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    // Missing, or not readable: then it gives no hints.
    return NOTHING;
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile()) return NOTHING;
    const now = { identity: `${stats.dev}:${stats.ino}`, size: stats.size };
    if (before === undefined) return { now, text: "" };
    const isSame = before.identity === now.identity && before.size <= now.size;
    if (isSame && before.size === now.size) return { now, text: "" };
    const from = Math.max(isSame ? before.size : 0, now.size - MAX_BYTES);
    const bytes = Buffer.alloc(now.size - from);
    return { now, text: bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, from)) };
  } catch {
    return NOTHING;
  } finally {
    closeSync(fd);
  }
}
