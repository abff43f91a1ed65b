import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { splitLines } from "../../host/safe-fs.ts";
import { errorCode } from "../../host/source.ts";
import { syncDirectory } from "../state/durable-files.ts";
import type { StateDir } from "../state/state-layout.ts";
import { chunksOf, isOpen, MAX_LINE_BYTES, readHistory } from "./reader.ts";

/**
 * Renames journal to journal.1, journal.1 to journal.2 and so on. The oldest file is dropped, except for entries that
 * are open or still have a file in quarantine: they are prepended to the new oldest file. Every step is one rename, so
 * a crash in between leaves duplicate lines or an unused number, both of which readers accept.
 */
export async function rotateJournal(stateDir: StateDir, keep: number): Promise<void> {
  await mergeIntoOldest(stateDir, keep);
  for (let number = keep - 1; number >= 1; number--) {
    await renameIfThere(numbered(stateDir, number), numbered(stateDir, number + 1));
  }
  await renameIfThere(stateDir.journal, numbered(stateDir, 1));
  await syncDirectory(dirname(stateDir.journal));
}

/** Replaces the oldest file by its kept entries, followed by the second oldest. */
async function mergeIntoOldest(stateDir: StateDir, keep: number): Promise<void> {
  const oldest = await openIfThere(numbered(stateDir, keep));
  if (oldest === undefined) return;
  const next = numbered(stateDir, keep - 1);
  const second = await openIfThere(next);
  const temporary = `${stateDir.journal}.merging`;
  const merged = await open(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    await appendKept(oldest, merged, await idsToKeep(stateDir));
    if (second !== undefined) for await (const chunk of chunksOf(second)) await merged.writeFile(chunk);
    await merged.sync();
  } finally {
    await merged.close();
    await oldest.close();
    await second?.close();
  }
  await rename(temporary, numbered(stateDir, keep));
  if (second !== undefined) await unlink(next);
}

async function appendKept(from: FileHandle, to: FileHandle, ids: ReadonlySet<string>): Promise<void> {
  for await (const line of splitLines(chunksOf(from), MAX_LINE_BYTES)) {
    if (line.isCut) continue;
    const id = looseId(line.bytes);
    if (id !== undefined && ids.has(id)) await to.writeFile(Buffer.concat([line.bytes, Buffer.from("\n")]));
  }
}

async function idsToKeep(stateDir: StateDir): Promise<ReadonlySet<string>> {
  const { records } = await readHistory(stateDir.journal);
  const unfinished = records.filter(isOpen).map((record) => record.id);
  return new Set([...unfinished, ...(await readdir(stateDir.quarantine))]);
}

/** Reads only the id, so that an entry of a newer version is kept as well. */
function looseId(line: Uint8Array): string | undefined {
  try {
    const json: unknown = JSON.parse(Buffer.from(line).toString());
    if (typeof json !== "object" || json === null || !("id" in json)) return undefined;
    return typeof json.id === "string" ? json.id : undefined;
  } catch {
    // A torn or damaged line has no id to keep.
    return undefined;
  }
}

function numbered(stateDir: StateDir, number: number): string {
  return number === 0 ? stateDir.journal : `${stateDir.journal}.${number}`;
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (thrown) {
    if (errorCode(thrown) !== "ENOENT") throw thrown;
  }
}
