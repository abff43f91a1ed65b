import { constants } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type RawLine, splitLines } from "../../host/safe-fs.ts";
import { describeError, errorCode } from "../../host/source.ts";
import {
  type BeginEntry,
  type DoneOutcome,
  type JournalEntry,
  type JournalId,
  type ParsedLine,
  parseEntry,
  type UnreadableCode,
} from "./entry.ts";

/** The longest entry contains a few dozen log files; a longer line is damaged, and must not fill the memory. */
export const MAX_LINE_BYTES = 256 * 1024;

/** An unreadable line or file of the journal. Reported, never fatal. */
export interface JournalProblem {
  readonly file: string;
  readonly line?: number;
  readonly code: UnreadableCode | "unreadable-file";
  readonly reason: string;
  /** The id of an entry that a newer version wrote. */
  readonly id?: JournalId;
}

export type JournalItem =
  | { readonly type: "entry"; readonly entry: JournalEntry }
  | { readonly type: "problem"; readonly problem: JournalProblem };

/** Selects the lines that are parsed. */
export type LineFilter = (line: RawLine) => boolean;

/** Every entry of all journal files, oldest first. Safe with a concurrent writer; a missing journal is empty. */
export async function* readJournal(
  journalPath: string,
  isWanted: LineFilter = () => true,
): AsyncGenerator<JournalItem> {
  const opened = await openNewestFirst(journalPath);
  try {
    for (const problem of opened.problems) yield { type: "problem", problem };
    for (const { path, handle } of opened.files.toReversed()) {
      yield* interpretLines(path, wantedOf(splitLines(chunksOf(handle), MAX_LINE_BYTES), isWanted));
    }
  } finally {
    for (const { handle } of opened.files) await handle.close();
  }
}

async function* wantedOf(lines: AsyncIterable<RawLine>, isWanted: LineFilter): AsyncGenerator<RawLine> {
  for await (const line of lines) {
    if (isWanted(line)) yield line;
  }
}

/**
 * Distinguishes a truncated line (by a crash or a full disk, before any change was made) from a damaged one. A line is
 * truncated if it is last without a newline, or is followed by a `resumed` entry.
 */
export async function* interpretLines(
  file: string,
  lines: AsyncIterable<RawLine> | Iterable<RawLine>,
): AsyncGenerator<JournalItem> {
  let doubtful: JournalProblem | undefined;
  for await (const line of lines) {
    if (line.bytes.length === 0) continue;
    const parsed = line.isCut ? TOO_LONG : parseEntry(line.bytes);
    if (parsed.ok && parsed.entry.event === "resumed") {
      doubtful = undefined;
      continue;
    }
    if (doubtful !== undefined) yield { type: "problem", problem: doubtful };
    doubtful = undefined;
    if (parsed.ok) yield { type: "entry", entry: parsed.entry };
    else if (line.terminated) {
      const { ok: _ok, ...problem } = parsed;
      doubtful = { file, line: line.number, ...problem };
    }
  }
  if (doubtful !== undefined) yield { type: "problem", problem: doubtful };
}

const TOO_LONG: ParsedLine = { ok: false, code: "damaged", reason: "too long" };

/** `journal.3` → 3, `journal` → 0, anything else → undefined. */
export function journalNumber(journalPath: string, name: string): number | undefined {
  const base = basename(journalPath);
  if (name === base) return 0;
  const suffix = name.startsWith(`${base}.`) ? name.slice(base.length + 1) : "";
  return /^[1-9]\d{0,3}$/.test(suffix) ? Number(suffix) : undefined;
}

interface OpenedFiles {
  readonly files: readonly { readonly path: string; readonly handle: FileHandle }[];
  readonly problems: readonly JournalProblem[];
}

/**
 * Rotation only moves a file to a higher number, so opening in ascending order can open a file twice but never miss
 * one.
 */
async function openNewestFirst(journalPath: string): Promise<OpenedFiles> {
  const files: { path: string; handle: FileHandle }[] = [];
  const problems: JournalProblem[] = [];
  const seen = new Set<string>();
  const highest = Math.max(0, ...(await journalNumbers(journalPath)));
  // One more, in case of a concurrent rotation.
  for (let number = 0; number <= highest + 1; number++) {
    const path = number === 0 ? journalPath : `${journalPath}.${number}`;
    try {
      const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stats = await handle.stat({ bigint: true });
      const identity = `${stats.dev}:${stats.ino}`;
      if (stats.isFile() && !seen.has(identity)) files.push({ path, handle });
      else await handle.close();
      if (!stats.isFile()) problems.push({ file: path, code: "unreadable-file", reason: "not a regular file" });
      seen.add(identity);
    } catch (thrown) {
      if (errorCode(thrown) !== "ENOENT")
        problems.push({ file: path, code: "unreadable-file", reason: describeError(thrown) });
    }
  }
  return { files, problems };
}

async function journalNumbers(journalPath: string): Promise<readonly number[]> {
  try {
    const names = await readdir(dirname(journalPath));
    return names.map((name) => journalNumber(journalPath, name)).filter((number) => number !== undefined);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw thrown;
  }
}

export async function* chunksOf(handle: FileHandle): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.alloc(64 * 1024);
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/**
 * - `open`: announced, without an end: in flight, or interrupted and to be closed by the next run.
 * - `done`: ended, with `outcome`. A moved file is in quarantine and can be put back.
 * - `undoing`: being put back, or interrupted while it was.
 * - `undone`: the file is at its original path again.
 * - `pruned`: the quarantined file was deleted permanently.
 * - `rolled-back`: interrupted, and found not to have happened.
 * - `interrupted`: a scan decides whether it took effect.
 * - `lost`: interrupted, and the file is in neither place. Manual check needed.
 */
export type RecordState = "open" | "done" | "undoing" | "undone" | "pruned" | "rolled-back" | "interrupted" | "lost";

/** Everything in the journal about one action. */
export interface HistoryRecord extends Omit<BeginEntry, "event"> {
  readonly state: RecordState;
  readonly endedAt?: string;
  readonly outcome?: DoneOutcome;
  readonly detail?: string;
}

export interface History {
  /** In the order in which they were started. */
  readonly records: readonly HistoryRecord[];
  readonly problems: readonly JournalProblem[];
}

export async function readHistory(journalPath: string): Promise<History> {
  return foldHistory(readJournal(journalPath));
}

export async function foldHistory(items: AsyncIterable<JournalItem> | Iterable<JournalItem>): Promise<History> {
  const records = new Map<JournalId, HistoryRecord>();
  const problems: JournalProblem[] = [];
  for await (const item of items) {
    if (item.type === "problem") problems.push(item.problem);
    else apply(records, item.entry);
  }
  return { records: [...records.values()], problems };
}

function apply(records: Map<JournalId, HistoryRecord>, entry: JournalEntry): void {
  if (entry.event === "resumed") return;
  const known = records.get(entry.id);
  if (entry.event === "begin") {
    // An interrupted rotation leaves duplicate lines, in order; the following lines set the state again.
    if (known === undefined) records.set(entry.id, { ...withoutEvent(entry), state: "open" });
    return;
  }
  // The beginning may have been rotated away before its end.
  if (known !== undefined) records.set(entry.id, { ...known, ...ending(entry) });
}

function ending(entry: Exclude<JournalEntry, { event: "begin" | "resumed" }>): Partial<HistoryRecord> {
  switch (entry.event) {
    case "done":
      return {
        state: "done",
        endedAt: entry.at,
        outcome: entry.outcome,
        // An end without a detail keeps the detail of an earlier end.
        ...(entry.detail === undefined ? {} : { detail: entry.detail }),
      };
    case "undoing":
      return { state: "undoing" };
    case "undone":
      return { state: "undone", endedAt: entry.at };
    case "pruned":
      return { state: "pruned" };
    case "recovered":
      return {
        endedAt: entry.at,
        detail: entry.detail,
        ...(entry.how === "completed" ? { state: "done", outcome: "healed" } : { state: entry.how }),
      };
  }
}

function withoutEvent({ event: _event, ...rest }: BeginEntry): Omit<BeginEntry, "event"> {
  return rest;
}

/** To be closed by the next run that may write. */
export function isOpen(record: HistoryRecord): boolean {
  return record.state === "open" || record.state === "undoing";
}

/** Whether `undo` can put it back: only files in quarantine. */
export function isUndoable(record: HistoryRecord): boolean {
  return record.action.kind === "quarantine-file" && record.state === "done" && record.outcome === "healed";
}
