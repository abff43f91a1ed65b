import { mkdirSync, readdirSync, readlinkSync } from "node:fs";
import { basename, dirname, join, posix } from "node:path";
import { hostPath, resolveOnHost } from "../../host/paths.ts";
import { describeError } from "../../host/source.ts";
import { whyNotRootsLog } from "../../node/logs.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HealContext, Intent } from "../journal/journal.ts";
import { syncDirectory } from "../state/durable-files.ts";
import { type Outcome, ok, type Refusal, refuse } from "../state/outcome.ts";
import {
  canonicalPath,
  copyTail,
  type FileIdentity,
  type HeldDirectory,
  holdDirectory,
  identify,
  kindInWords,
} from "./file-identity.ts";

/** The directory of a container's log. */
interface LogDirectory {
  readonly path: string;
  readonly directory: HeldDirectory;
  /** The current log, and those that kubelet rotated (`0.log.20240131-101530`, later .gz). */
  readonly files: readonly { readonly name: string; readonly identity: FileIdentity }[];
  /** Entries that are not logs: they have no content that could be lost. */
  readonly skipped: readonly string[];
}

/**
 * A container's log files, with its rotated files: in its own directory and, if the log is a link (as with
 * cri-dockerd), in the directory of its target. Empty if nothing is left. Refuses if a file may not be copied: then it
 * must not be removed either.
 */
function findLogs(hostRoot: string, logPath: string): Outcome<readonly LogDirectory[]> {
  const own = findIn(hostRoot, logPath);
  if (!own.ok) return own;
  if (own.value === undefined) return ok([]);
  const { link, ...found } = own.value;
  if (link === undefined) return ok([found]);
  const linked = followLink(hostRoot, logPath, link);
  if (!linked.ok) {
    found.directory.close();
    return linked;
  }
  return ok(linked.value === undefined ? [found] : [found, linked.value]);
}

interface Found extends LogDirectory {
  /** The target of the current log, if it is a link. */
  readonly link?: string;
}

function findIn(hostRoot: string, logPath: string): Outcome<Found | undefined> {
  const parent = realDirectory(hostRoot, dirname(logPath));
  if (!parent.ok) return parent;
  const path = parent.value;
  const held = holdDirectory(hostRoot, path);
  if (!held.ok) return held;
  if (held.value === undefined) return ok(undefined);
  const directory = held.value;
  try {
    return ok({ path, directory, ...entriesOf(directory, path, basename(logPath)) });
  } catch (thrown) {
    directory.close();
    throw thrown;
  }
}

function entriesOf(directory: HeldDirectory, path: string, current: string): Omit<Found, "path" | "directory"> {
  const files: LogDirectory["files"][number][] = [];
  const skipped: string[] = [];
  let link: string | undefined;
  for (const name of readdirSync(directory.entry("."))) {
    if (name !== current && !name.startsWith(`${current}.`)) continue;
    const found = identify(directory.entry(name));
    if (found.what === "file") files.push({ name, identity: found.identity });
    if (found.what !== "odd") continue;
    if (name === current && found.kind === "symlink") link = readlinkSync(directory.entry(name));
    else skipped.push(`${path}/${name} is ${kindInWords(found.kind)}.`);
  }
  // The current one first, then the newest.
  files.sort(
    (one, other) =>
      Number(other.name === current) - Number(one.name === current) ||
      Number(other.identity.mtimeNs - one.identity.mtimeNs),
  );
  return { files, skipped, link };
}

const UNTRUSTED_LINK_NEXT = "Check the link, save the log by hand if it is wanted, remove the link, then heal again.";

/** A link that users other than root could have created may lead anywhere: it is not followed. */
function realDirectory(hostRoot: string, directory: string): Outcome<string> {
  const resolved = posix.join(
    "/",
    posix.relative(hostPath("/", hostRoot), resolveOnHost(hostRoot, directory, "follow")),
  );
  if (resolved === posix.normalize(directory)) return ok(resolved);
  const objection = whyNotRootsLog(hostRoot, directory);
  if (objection === undefined) return ok(resolved);
  return refuse(`${directory} leads through a symbolic link, and ${objection}.`, UNTRUSTED_LINK_NEXT);
}

/** kubelet, containerd and Docker all use such names; no secret has one. */
const LOG_NAME = /\.log(?:\.\S{0,60})?$/;

function followLink(hostRoot: string, logPath: string, link: string): Outcome<LogDirectory | undefined> {
  const target = posix.resolve(dirname(logPath), link);
  const no = (why: string) =>
    refuse(`The log ${logPath} is a symbolic link to ${target}: ${why}.`, UNTRUSTED_LINK_NEXT);
  if (!LOG_NAME.test(basename(target))) return no("that is not the name of a log");
  const objection = whyNotRootsLog(hostRoot, logPath) ?? whyNotRootsLog(hostRoot, target);
  if (objection !== undefined) return no(objection);
  const found = findIn(hostRoot, target);
  if (!found.ok || found.value === undefined) return found;
  const { link: further, ...logs } = found.value;
  if (further === undefined) return ok(logs);
  logs.directory.close();
  return no("that is a symbolic link, too");
}

export interface SaveLogsRequest extends Omit<Intent, "action"> {
  readonly sandboxId: string;
  /** The containers' current log files as paths of the node: /var/log/pods/<pod>/<container>/0.log */
  readonly logPaths: readonly string[];
  readonly limits?: typeof DEFAULT_LIMITS;
}

const DEFAULT_LIMITS = {
  /** The maximum size kept of each file's end. */
  bytesPerFile: 2 * 1024 * 1024,
  /** The maximum size of all files together. */
  bytesInAll: 16 * 1024 * 1024,
};

/** `saved`: paths of the node. `skipped`: what was skipped, and why. A log that exists and may not be copied is a refusal instead. */
export type SaveLogsOutcome =
  | {
      readonly outcome: "saved";
      readonly id: JournalId;
      readonly saved: readonly string[];
      readonly skipped: readonly string[];
    }
  | { readonly outcome: "refused" | "failed"; readonly id?: JournalId; readonly refusal: Refusal };

/** Copies containers' logs into quarantine before RemovePodSandbox deletes them. */
export async function saveLogs(context: HealContext, request: SaveLogsRequest): Promise<SaveLogsOutcome> {
  const { sandboxId, logPaths, limits = DEFAULT_LIMITS, ...why } = request;
  const paths = [...new Set(logPaths)].map((path) => canonicalPath(context.hostRoot, path));
  const entry = await context.journal.begin({ ...why, action: { kind: "save-logs", sandboxId, paths } });
  if (!entry.ok) return { outcome: "refused", refusal: entry.refusal };
  const id = entry.value;
  try {
    const found = findAll(context.hostRoot, paths);
    if (!found.ok) {
      await context.journal.done(id, "refused", found.refusal.message);
      return { outcome: "refused", id, refusal: found.refusal };
    }
    const copied = await copyAll(context, id, found.value, limits);
    // This line is on disk before the one that announces the removal.
    context.journal.ended(id, "healed", `${copied.saved.length} saved, ${copied.skipped.length} skipped`);
    return { outcome: "saved", id, ...copied };
  } catch (thrown) {
    const message = `The logs of sandbox ${sandboxId} could not be saved: ${describeError(thrown)}.`;
    await context.journal.done(id, "failed", message);
    return { outcome: "failed", id, refusal: { message, next: "Free space in the state directory, then heal again." } };
  }
}

/** Where the logs of one container are found, and its name. */
type Source = LogDirectory & { readonly container: string };

/** Finds all logs, or the reason why one may not be copied, before the first copy. */
function findAll(hostRoot: string, paths: readonly string[]): Outcome<readonly Source[]> {
  const all: Source[] = [];
  for (const path of paths) {
    const found = findLogs(hostRoot, path);
    if (!found.ok) {
      closeAll(all);
      return found;
    }
    // /var/log/pods/<pod>/<container>/: containers of one pod have different names.
    all.push(...found.value.map((logs) => ({ ...logs, container: basename(dirname(path)) })));
  }
  return ok(all);
}

function closeAll(sources: readonly Source[]): void {
  for (const { directory } of sources) directory.close();
}

async function copyAll(context: HealContext, id: JournalId, sources: readonly Source[], limits: typeof DEFAULT_LIMITS) {
  const entryDirectory = join(context.stateDir.quarantine, id);
  const logs = join(entryDirectory, "logs");
  const made = new Set([context.stateDir.quarantine, entryDirectory, logs]);
  const saved: string[] = [];
  const skipped: string[] = [];
  let left = limits.bytesInAll;
  try {
    mkdirSync(entryDirectory, { mode: 0o700 });
    mkdirSync(logs, { mode: 0o700 });
    for (const source of sources) {
      const target = join(logs, source.container);
      skipped.push(...source.skipped);
      mkdirSync(target, { mode: 0o700, recursive: true });
      made.add(target);
      for (const { name, identity } of source.files) {
        const from = join(source.path, name);
        const room = Math.min(limits.bytesPerFile, left);
        const objection = objectionTo(name, identity, room);
        if (objection !== undefined) {
          skipped.push(`${from} ${objection}`);
          continue;
        }
        left -= await copyTail(source.directory.entry(name), join(target, name), room);
        saved.push(from);
      }
    }
  } finally {
    closeAll(sources);
  }
  await Promise.all([...made].map(syncDirectory));
  return { saved, skipped };
}

function objectionTo(name: string, { size }: FileIdentity, room: number): string | undefined {
  if (room <= 0) return "was left out: the limit for all logs together is reached.";
  return name.endsWith(".gz") && size > BigInt(room)
    ? "was left out: compressed, and too large to keep whole."
    : undefined;
}
