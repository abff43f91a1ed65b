import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { copyTail } from "./copy-tail.ts";
import type { HealContext } from "./heal-context.ts";
import { canonicalPath } from "./host-path.ts";
import type { Intent } from "./journal.ts";
import type { JournalId } from "./journal-id.ts";
import { findLogFiles, type LogFile } from "./log-files.ts";
import type { Refusal } from "./outcome.ts";
import { syncDirectory } from "./sync-directory.ts";
import { describeError } from "./system-error.ts";

export interface SaveLogsRequest extends Omit<Intent, "action"> {
  readonly sandboxId: string;
  /** The containers' current log files as the node names them: /var/log/pods/<pod>/<container>/0.log */
  readonly logPaths: readonly string[];
  readonly limits?: LogLimits;
}

export interface LogLimits {
  /** Of each file this much of its end is kept; default 2 MiB. */
  readonly bytesPerFile: number;
  /** Of all files together; default 16 MiB. */
  readonly bytesInAll: number;
}

const DEFAULT_LIMITS: LogLimits = { bytesPerFile: 2 * 1024 * 1024, bytesInAll: 16 * 1024 * 1024 };

export interface SavedLog {
  readonly from: string;
  readonly to: string;
  readonly bytes: number;
  /** Size of the original: more than `bytes` when only its end was kept. */
  readonly ofBytes: number;
}

/** `skipped` says in words what was passed over and why; a skipped file is no failure. */
export type SaveLogsOutcome =
  | {
      readonly outcome: "saved";
      readonly id: JournalId;
      readonly saved: readonly SavedLog[];
      readonly skipped: readonly string[];
    }
  | { readonly outcome: "refused" | "failed"; readonly id?: JournalId; readonly refusal: Refusal };

/** Copies containers' logs into quarantine before RemovePodSandbox takes them away for good. */
export async function saveLogs(context: HealContext, request: SaveLogsRequest): Promise<SaveLogsOutcome> {
  const { sandboxId, logPaths, limits = DEFAULT_LIMITS, ...why } = request;
  const paths = [...new Set(logPaths)].map((path) => canonicalPath(context.hostRoot, path));
  const begun = await context.journal.begin({ ...why, action: { kind: "save-logs", sandboxId, paths } });
  if (!begun.ok) return { outcome: "refused", refusal: begun.refusal };
  const id = begun.value;
  try {
    const copied = await copyAll(context, id, paths, limits);
    // The line goes to the disk before the one that announces the removal.
    context.journal.ended(id, "healed", `${copied.saved.length} saved, ${copied.skipped.length} skipped`);
    return { outcome: "saved", id, ...copied };
  } catch (thrown) {
    const message = `The logs of sandbox ${sandboxId} could not be saved: ${describeError(thrown)}.`;
    await context.journal.done(id, "failed", message);
    return { outcome: "failed", id, refusal: { message, next: "Free space in the state directory, then heal again." } };
  }
}

interface Copied {
  readonly saved: readonly SavedLog[];
  readonly skipped: readonly string[];
}

async function copyAll(
  context: HealContext,
  id: JournalId,
  paths: readonly string[],
  limits: LogLimits,
): Promise<Copied> {
  const entryDirectory = join(context.stateDir.quarantine, id);
  const logs = join(entryDirectory, "logs");
  mkdirSync(entryDirectory, { mode: 0o700 });
  mkdirSync(logs, { mode: 0o700 });
  const made = new Set([context.stateDir.quarantine, entryDirectory, logs]);
  const saved: SavedLog[] = [];
  const skipped: string[] = [];
  let left = limits.bytesInAll;
  for (const path of paths) {
    const found = findLogFiles(context.hostRoot, path);
    if (typeof found === "string") {
      skipped.push(found);
      continue;
    }
    skipped.push(...found.skipped);
    // /var/log/pods/<pod>/<container>/: containers of one pod have different names.
    const target = join(logs, basename(dirname(path)));
    try {
      mkdirSync(target, { mode: 0o700, recursive: true });
      made.add(target);
      for (const file of found.files) {
        const from = join(dirname(path), file.name);
        const room = Math.min(limits.bytesPerFile, left);
        const objection = objectionTo(file, room);
        if (objection !== undefined) {
          skipped.push(`${from} ${objection}`);
          continue;
        }
        const to = join(target, file.name);
        const bytes = await copyTail(found.directory.entry(file.name), to, room);
        left -= bytes;
        saved.push({ from, to, bytes, ofBytes: Number(file.identity.size) });
      }
    } finally {
      found.directory.close();
    }
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
