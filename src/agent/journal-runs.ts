import { lstatSync } from "node:fs";
import { didInWords } from "../evidence/step.ts";
import { parseEntry } from "../heal/journal/entry.ts";
import { foldHistory, type HistoryRecord, isUndoable, type JournalItem } from "../heal/journal/reader.ts";
import { stateDirLayout } from "../heal/state/state-layout.ts";
import { readTail } from "../host/safe-fs.ts";
import type { HealItem, HealRun } from "./state/state.ts";
import type { Store } from "./state/store.ts";

const MAX_RUNS = 20;
const MAX_ITEMS = 30;

/** The newest runs in a part of the journal, newest first. Truncated or unknown lines are skipped. */
export async function runsIn(lines: readonly string[]): Promise<readonly HealRun[]> {
  const items = lines.flatMap((line): readonly JournalItem[] => {
    const parsed = parseEntry(Buffer.from(line));
    return parsed.ok ? [{ type: "entry", entry: parsed.entry }] : [];
  });
  const { records } = await foldHistory(items);
  const runs = [...Map.groupBy(records, ({ run }) => run).values()].map(runOf);
  return runs.slice(-MAX_RUNS).toReversed();
}

function runOf(records: readonly HistoryRecord[]): HealRun {
  const [first] = records;
  const items = [...Map.groupBy(records, ({ finding }) => finding).values()].map(itemOf);
  const ends = records.flatMap(({ endedAt }) => (endedAt === undefined ? [] : [Date.parse(endedAt)]));
  const seconds = (Math.max(...ends) - Date.parse(first?.at ?? "")) / 1000;
  return {
    run: first?.run ?? "",
    at: first?.at ?? "",
    by: first?.by,
    ...(Number.isFinite(seconds) && seconds >= 0 ? { seconds } : {}),
    items: items.slice(0, MAX_ITEMS),
    more: Math.max(0, items.length - MAX_ITEMS),
  };
}

function itemOf(records: readonly HistoryRecord[]): HealItem {
  const [first] = records;
  const pod = records.find(({ subject }) => subject.pod !== undefined)?.subject.pod;
  const failed = records.find(({ outcome }) => outcome === "failed" || outcome === "refused");
  const did = records.filter(({ outcome }) => outcome === "healed").map(({ action }) => didInWords(action));
  return {
    finding: first?.finding ?? "",
    class: first?.class ?? "",
    subject: pod === undefined ? (first?.subject.path ?? first?.subject.name ?? "") : `${pod.namespace}/${pod.name}`,
    outcome: outcomeOf(records, failed),
    did: [...new Set(did)],
    reason: failed?.detail,
    undo: records.filter(isUndoable).map(({ id }) => id),
  };
}

function outcomeOf(records: readonly HistoryRecord[], failed: HistoryRecord | undefined): HealItem["outcome"] {
  if (failed !== undefined) return failed.outcome === "refused" ? "refused" : "failed";
  if (records.some(({ state }) => state === "undone")) return "undone";
  return records.every(({ state }) => state === "done" || state === "pruned") ? "done" : "interrupted";
}

/** The end of the journal contains the runs that a page shows. */
const TAIL_BYTES = 256 * 1024;
/** The version of a missing journal: unghost has changed nothing yet. */
const NO_JOURNAL = "none";

/**
 * Publishes the last runs on this node, including those of the command line and the boot hook, whenever the journal
 * changed.
 */
export function publishRuns(store: Store, stateDir: string, onProblem: (error: unknown) => void): () => void {
  const { journal } = stateDirLayout(stateDir);
  let published: string | undefined;
  let reading: Promise<void> | undefined;

  async function refresh(): Promise<void> {
    const file = lstatSync(journal, { throwIfNoEntry: false });
    const version = file === undefined ? NO_JOURNAL : `${file.dev}:${file.ino}:${file.size}`;
    if (version === published) return;
    if (file?.isFile() === false) throw new Error(`${journal} is not a regular file`);
    const tail = readTail(journal, TAIL_BYTES);
    if (tail.kind === "unreadable") throw new Error(`${journal} ${tail.reason}`);
    const runs = tail.kind === "absent" ? [] : await runsIn(tail.text.split("\n"));
    published = version;
    store.update((state) => ({ ...state, runs }));
  }

  return store.onEvent(({ kind }) => {
    if (kind !== "scanned" && kind !== "healed" && kind !== "heal-failed") return;
    reading ??= refresh()
      .catch(onProblem)
      .finally(() => {
        reading = undefined;
      });
  });
}
