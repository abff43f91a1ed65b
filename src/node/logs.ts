import type { Stats } from "node:fs";
import { posix } from "node:path";
import type { SocketPlaces } from "../host/distributions.ts";
import { existsSync, lstatSync } from "../host/guarded-fs.ts";
import { hostPath, resolveOnHost } from "../host/paths.ts";
import { readTail } from "../host/safe-fs.ts";
import { absent, errorLabel, type Oddity, read, type Source } from "../host/source.ts";
import { printable } from "../host/text.ts";
import { isTrustedUid } from "../host/trusted-path.ts";
import type { LogFacts, LogLine } from "./types/snapshot.ts";

export interface LogPlaces {
  readonly root: string;
  readonly sources: Pick<SocketPlaces, "units" | "logFiles">;
  readonly signal: AbortSignal;
  /** A cheap check whether a line may be about a sandbox. Other lines are dropped. */
  readonly isRelevantLine: (line: string) => boolean;
}

/** A flood of errors fills this in seconds; older lines only repeat them. */
const TAIL_BYTES = 4 * 1024 * 1024;
/** Per source: many lines of kubelet must not displace the runtime's. */
const KEPT_LINES = 2000;

/**
 * The newest lines of the runtime's and kubelet's logs that may concern a sandbox. Never fails a scan, because logs are
 * optional.
 */
export async function readLogs({ root, sources, signal, isRelevantLine }: LogPlaces): Promise<Source<LogFacts>> {
  const places: string[] = [];
  const lines: LogLine[] = [];
  const oddities: Oddity[] = [];
  for (const file of sources.logFiles) {
    const tail = readTail(resolveOnHost(root, file, "follow"), TAIL_BYTES);
    if (tail.kind === "absent") continue;
    if (tail.kind === "unreadable") {
      oddities.push({ path: file, reason: tail.reason });
      continue;
    }
    const objection = whyNotRootsLog(root, file);
    if (objection !== undefined) {
      // A log that another user could have written is not evidence.
      oddities.push({ path: file, reason: `is not used: ${objection}; check who wrote it, then chown it to root` });
      continue;
    }
    places.push(file);
    lines.push(...relevantLines(file, tail.text, isRelevantLine));
  }
  if (existsSync(resolveOnHost(root, "/run/systemd/journal", "follow"))) {
    // Loaded only if there is a journal: modules that start processes take a millisecond to load.
    const { readJournald } = await import("./journald.ts");
    const journals = await Promise.all(writers(sources.units).map((units) => readJournald(root, units, signal)));
    for (const journal of journals) {
      if ("reason" in journal) {
        oddities.push({ path: "journal", reason: journal.reason });
        continue;
      }
      if (!places.includes("journal")) places.push("journal");
      const own = journal.lines.filter((line) => isRelevantLine(line)).slice(-KEPT_LINES);
      lines.push(...own.map((text) => ({ place: "journal", text })));
    }
  }
  if (places.length === 0 && oddities.length === 0)
    return absent("there is no log of the runtime that unghost knows of");
  return read({ places, lines }, oddities);
}

/** Kubelet's units and the runtime's, each with its own limit. */
function writers(units: readonly string[]): readonly (readonly string[])[] {
  const isKubelet = (unit: string): boolean => /kubel/.test(unit);
  return [units.filter((unit) => !isKubelet(unit)), units.filter(isKubelet)].filter((group) => group.length > 0);
}

/** From the newest line back, no further than needed. */
function relevantLines(place: string, text: string, isRelevantLine: LogPlaces["isRelevantLine"]): LogLine[] {
  const lines: LogLine[] = [];
  for (let end = text.length; end >= 0 && lines.length < KEPT_LINES; ) {
    const start = end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1;
    const line = text.slice(start, end);
    if (isRelevantLine(line)) lines.push({ place, text: copyOf(line) });
    end = start - 1;
  }
  return lines.reverse();
}

/** A substring keeps the whole string in memory, and a line may stay in a report long after its log was read. */
function copyOf(line: string): string {
  return Buffer.from(line).toString();
}

const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/**
 * Why a user other than root could have written or replaced a log; undefined if none could. Checks the path as given
 * and as resolved, from the node's root directory down.
 *
 * A group-writable directory is accepted: on Ubuntu /var/log belongs to root and the group syslog. A file that such a
 * group creates there is not root's, and is refused by its owner.
 */
export function whyNotRootsLog(root: string, path: string): string | undefined {
  const top = hostPath("/", root);
  const resolved = posix.join("/", posix.relative(top, resolveOnHost(root, path, "follow")));
  const entries = new Set([...entriesOf(posix.normalize(path)), ...entriesOf(resolved)]);
  for (const entry of entries) {
    const objection = objectionTo(root, entry);
    if (objection !== undefined) return `${printable(entry)} ${objection}`;
  }
  return undefined;
}

/** The path and every parent directory, the topmost first. */
function entriesOf(path: string): readonly string[] {
  return path === "/" ? ["/"] : [...entriesOf(posix.dirname(path)), path];
}

function objectionTo(root: string, entry: string): string | undefined {
  let stats: Stats;
  try {
    stats = lstatSync(hostPath(root, entry));
  } catch (error) {
    const code = errorLabel(error);
    return code === "ENOENT" || code === "ENOTDIR" ? undefined : `could not be checked (${code})`;
  }
  if (!isTrustedUid(stats.uid)) return `is owned by uid ${stats.uid}, not by root`;
  if (stats.isSymbolicLink() || (stats.mode & OTHERS_WRITE) === 0) return undefined;
  const isSafe = stats.isDirectory() && (stats.mode & STICKY) !== 0;
  return isSafe ? undefined : `can be written by every user (mode ${(stats.mode & 0o7777).toString(8)})`;
}
