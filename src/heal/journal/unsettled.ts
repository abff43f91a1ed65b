import { parseJson } from "../../host/json.ts";
import type { RawLine } from "../../host/split-lines.ts";
import { findStateDir } from "../files/state-dir.ts";
import { foldHistory, type HistoryRecord } from "./history.ts";
import { readJournal } from "./reader.ts";

/** As the journal writes every entry that has an id. A line of any other form is understood in full. */
const HEAD = /^\{"event":"([a-z]{1,12})","id":"([0-9a-z-]{1,20})"/;
const HEAD_BYTES = 64;
const ENDS: ReadonlySet<string> = new Set(["done", "undone", "pruned"]);

/**
 * The records that did not simply end: still open, or found so by a later run. Nearly all of a long journal has ended,
 * and to understand a line takes ten times as long as to see which entry it belongs to: so it is gone through twice.
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

/** The end of a line may have been torn off, and then it counts for nothing. */
function isWhole({ bytes }: RawLine): boolean {
  return parseJson(Buffer.from(bytes).toString("utf8")) !== undefined;
}

/** Of a line in any other form: no event and no id. */
function headOf({ bytes, isCut }: RawLine): { readonly event: string; readonly id: string } {
  const line = Buffer.from(bytes.buffer, bytes.byteOffset, isCut ? 0 : bytes.length);
  const [, event = "", id = ""] = HEAD.exec(line.toString("latin1", 0, HEAD_BYTES)) ?? [];
  return { event, id };
}

/**
 * Sandboxes whose removal an earlier run began and did not see the end of. A power cut in the middle may leave one
 * behind with its network already released: then nothing on the node shows any more that it is in the way.
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
