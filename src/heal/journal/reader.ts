import { constants } from "node:fs";
import { type FileHandle, open, readdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { type RawLine, splitLines } from "../../host/safe-fs.ts";
import { describeError, errorCode } from "../../host/source.ts";
import { type JournalEntry, type JournalId, type ParsedLine, parseEntry, type UnreadableCode } from "./entry.ts";

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
