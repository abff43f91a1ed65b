import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describeError } from "../../host/source.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HealContext, Intent } from "../journal/journal.ts";
import { type Outcome, ok, type Refusal } from "../outcome.ts";
import { copyTail } from "./copy-file.ts";
import { syncDirectory } from "./durable-files.ts";
import { canonicalPath } from "./file-identity.ts";
import { findLogs, type LogDirectory, type LogFile, pathOf } from "./log-files.ts";

export interface SaveLogsRequest extends Omit<Intent, "action"> {
  readonly sandboxId: string;
  /** The containers' current log files as paths of the node: /var/log/pods/<pod>/<container>/0.log */
  readonly logPaths: readonly string[];
  readonly limits?: LogLimits;
}

export interface LogLimits {
  /** The maximum size kept of each file's end; default 2 MiB. */
  readonly bytesPerFile: number;
  /** The maximum size of all files together; default 16 MiB. */
  readonly bytesInAll: number;
}

const DEFAULT_LIMITS: LogLimits = { bytesPerFile: 2 * 1024 * 1024, bytesInAll: 16 * 1024 * 1024 };

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

interface Copied {
  readonly saved: readonly string[];
  readonly skipped: readonly string[];
}

/** The logs of one container, in one directory or two. */
interface ContainerLogs {
  readonly container: string;
  readonly directories: readonly LogDirectory[];
}

/** Finds all logs, or the reason why one may not be copied, before the first copy. */
function findAll(hostRoot: string, paths: readonly string[]): Outcome<readonly ContainerLogs[]> {
  const all: ContainerLogs[] = [];
  for (const path of paths) {
    const found = findLogs(hostRoot, path);
    if (!found.ok) {
      for (const { directories } of all) closeAll(directories);
      return found;
    }
    // /var/log/pods/<pod>/<container>/: containers of one pod have different names.
    all.push({ container: basename(dirname(path)), directories: found.value });
  }
  return ok(all);
}

function closeAll(directories: readonly LogDirectory[]): void {
  for (const { directory } of directories) directory.close();
}

async function copyAll(
  context: HealContext,
  id: JournalId,
  found: readonly ContainerLogs[],
  limits: LogLimits,
): Promise<Copied> {
  const entryDirectory = join(context.stateDir.quarantine, id);
  const logs = join(entryDirectory, "logs");
  const made = new Set([context.stateDir.quarantine, entryDirectory, logs]);
  const saved: string[] = [];
  const skipped: string[] = [];
  let left = limits.bytesInAll;
  try {
    mkdirSync(entryDirectory, { mode: 0o700 });
    mkdirSync(logs, { mode: 0o700 });
    for (const { container, directories } of found) {
      const target = join(logs, container);
      for (const source of directories) {
        skipped.push(...source.skipped);
        mkdirSync(target, { mode: 0o700, recursive: true });
        made.add(target);
        for (const file of source.files) {
          const from = pathOf(source, file);
          const room = Math.min(limits.bytesPerFile, left);
          const objection = objectionTo(file, room);
          if (objection !== undefined) {
            skipped.push(`${from} ${objection}`);
            continue;
          }
          left -= await copyTail(source.directory.entry(file.name), join(target, file.name), room);
          saved.push(from);
        }
      }
    }
  } finally {
    for (const { directories } of found) closeAll(directories);
  }
  await Promise.all([...made].map(syncDirectory));
  return { saved, skipped };
}

function objectionTo(file: LogFile, room: number): string | undefined {
  if (room <= 0) return "was left out: the limit for all logs together is reached.";
  if (file.name.endsWith(".gz") && file.identity.size > BigInt(room))
    return "was left out: compressed, and too large to keep whole.";
  return undefined;
}
