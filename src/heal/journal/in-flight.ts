import { type LiveRun, liveRun, type ProcessIdentity } from "../state/run-lock.ts";
import { findStateDir } from "../state/state-dir.ts";
import { foldHistory, type HistoryRecord, readJournal } from "./reader.ts";

/** The entry of the currently running heal about one sandbox. */
export interface UnderWay {
  readonly pid: number;
  /** Id and class of the finding that it treats. */
  readonly finding: string;
  readonly class: string;
  readonly since: string;
}

/** The run that holds the lock of a state directory, if the directory is trusted. */
export async function findLiveRun(stateDir: string, uid: number, own: ProcessIdentity): Promise<LiveRun | undefined> {
  const found = await findStateDir(stateDir, uid);
  return found.ok && found.value !== undefined ? await liveRun(found.value, own) : undefined;
}

/**
 * The sandboxes that a run has started to heal, from its journal: a step is in flight, or the last one succeeded and
 * the next has not started. A sandbox whose last step failed or was refused is not included.
 */
export async function sandboxesUnderWay({ run, pid, journal }: LiveRun): Promise<ReadonlyMap<string, UnderWay>> {
  const ofRun = Buffer.from(JSON.stringify({ run }).slice(1, -1));
  const lines = readJournal(journal, ({ bytes, isCut }) => !isCut && Buffer.from(bytes).includes(ofRun));
  const treated = new Map<string, UnderWay>();
  for (const record of (await foldHistory(lines)).records) {
    const sandboxId = sandboxOf(record);
    if (record.run !== run || sandboxId === undefined) continue;
    const isUnderWay = record.state === "open" || (record.state === "done" && record.outcome === "healed");
    if (isUnderWay) treated.set(sandboxId, { pid, finding: record.finding, class: record.class, since: record.at });
    else treated.delete(sandboxId);
  }
  return treated;
}

function sandboxOf({ subject, action }: HistoryRecord): string | undefined {
  return subject.sandboxId ?? ("sandboxId" in action ? action.sandboxId : undefined);
}
