import type { RawLine } from "../../host/safe-fs.ts";
import { parseJson } from "../../host/text.ts";
import { findStateDir } from "../state/state-dir.ts";
import { foldHistory, type HistoryRecord, readJournal } from "./reader.ts";

/** The start of every entry with an id. A line of any other form is parsed completely. */
const HEAD = /^\{"event":"([a-z]{1,12})","id":"([0-9a-z-]{1,20})"/;
const HEAD_BYTES = 64;
const ENDS: ReadonlySet<string> = new Set(["done", "undone", "pruned"]);

/**
 * The records that did not simply end: open, or found open by a later run. Nearly all entries of a long journal have
 * ended, and parsing a line takes ten times as long as reading its id, so the journal is read twice.
 */
export async function readUnsettled(journalPath: string): Promise<readonly HistoryRecord[]> {
  const ended = new Map<string, boolean>();
  const note = (line: RawLine): boolean => {
    const { event, id } = headOf(line);
    ended.set(id, ENDS.has(event) && isWhole(line));
    return false;
  };
  await foldHistory(readJournal(journalPath, note));
  const { records } = await foldHistory(readJournal(journalPath, (line) => ended.get(headOf(line).id) !== true));
  return records.filter(({ state }) => !ENDS.has(state));
}

/** The end of a line may be torn, and then it does not count. */
function isWhole({ bytes }: RawLine): boolean {
  return parseJson(Buffer.from(bytes).toString("utf8")) !== undefined;
}

/** Empty for a line of any other form. */
export function headOf({ bytes, isCut }: RawLine): { readonly event: string; readonly id: string } {
  const line = Buffer.from(bytes.buffer, bytes.byteOffset, isCut ? 0 : bytes.length);
  const [, event = "", id = ""] = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES)) ?? [];
  return { event, id };
}

/**
 * Sandboxes whose removal an earlier run started and did not finish. After a power cut such a sandbox may have its
 * network already released: then there is no other sign that it blocks.
 */
export async function unfinishedRemovals(stateDir: string, uid: number): Promise<ReadonlySet<string>> {
  const found = await findStateDir(stateDir, uid);
  if (!found.ok || found.value === undefined) return new Set();
  const records = await readUnsettled(found.value.journal);
  return new Set(
    records.flatMap(({ action, state }) =>
      action.kind === "remove-sandbox" && (state === "open" || state === "interrupted") ? [action.sandboxId] : [],
    ),
  );
}
