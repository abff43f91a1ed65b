import { describeError } from "../host/source.ts";
import { type Actor, journalIds } from "./journal/entry.ts";
import { type HealContext, openJournal } from "./journal/journal.ts";
import { isOpen } from "./journal/reader.ts";
import { readUnsettled } from "./journal/unsettled.ts";
import { type Recovery, recoverOpenEntries } from "./quarantine/recover.ts";
import { ensureRoom, type RoomNeeded } from "./state/durable-files.ts";
import { type Outcome, ok, refuse } from "./state/outcome.ts";
import { acquireRunLock, type ProcessIdentity } from "./state/run-lock.ts";
import { findStateDir, openStateDir } from "./state/state-dir.ts";

export interface SessionOptions {
  readonly stateDir: string;
  readonly hostRoot: string;
  readonly uid: number;
  readonly own: ProcessIdentity;
  readonly clock: () => Date;
  /** 0 ≤ x < 1, as Math.random. */
  readonly random: () => number;
  /** How long to wait while another run holds the lock. */
  readonly lockWaitMs: number;
  readonly room?: RoomNeeded;
  /** For a process that opens one session after the other. */
  readonly memory?: SessionMemory;
  /** What started the run, for the journal. */
  readonly by?: Actor;
}

/** What a process remembers of its own last session: if the journal is unchanged since, no entry can be open. */
export interface SessionMemory {
  settledAs: string | undefined;
}

/** The right to change the node, until it is closed. */
export interface HealSession extends HealContext {
  /** Open entries of earlier runs, closed before this one starts. */
  readonly recoveries: readonly Recovery[];
  close(): Promise<void>;
}

/** The preconditions of any change: a trusted directory, free space, the lock, the journal, and no open entries. */
export async function openHealSession(options: SessionOptions): Promise<Outcome<HealSession>> {
  const { own, clock, random, hostRoot } = options;
  const stateDir = await openStateDir(options.stateDir, options.uid);
  if (!stateDir.ok) return stateDir;
  const room = await ensureRoom(stateDir.value.root, options.room);
  if (!room.ok) return room;
  const newId = journalIds(clock, random);
  const run = newId();
  const lock = await acquireRunLock({ path: stateDir.value.lock, own, run, waitMs: options.lockWaitMs });
  if (!lock.ok) return lock;
  const journal = await openJournal({ stateDir: stateDir.value, run, boot: own.boot, clock, newId, by: options.by });
  if (!journal.ok) {
    lock.value.release();
    return journal;
  }
  const context: HealContext = { stateDir: stateDir.value, journal: journal.value, hostRoot };
  const { memory = { settledAs: undefined } } = options;
  const isAsLeft = memory.settledAs !== undefined && memory.settledAs === journal.value.settledAs;
  memory.settledAs = undefined;
  let isSettled = isAsLeft;
  const close = async () => {
    try {
      await journal.value.close();
      if (isSettled) memory.settledAs = journal.value.settledAs;
    } finally {
      lock.value.release();
    }
  };
  try {
    // Reading a long journal takes as long as a heal.
    const recoveries = isAsLeft ? [] : await recoverOpenEntries(context);
    isSettled = recoveries.every(({ how }) => how !== "unsettled");
    return ok({ ...context, recoveries, close });
  } catch (thrown) {
    await close();
    return refuse(
      `What earlier runs left in ${stateDir.value.root} cannot be read: ${describeError(thrown)}.`,
      "Repair that directory first; until then nothing is changed.",
    );
  }
}

/**
 * Completes what a killed run left open, even if there is nothing else to do: a file halfway to quarantine, a marker in
 * a plugin's cache. Returns the recoveries.
 */
export async function settleEarlierRuns(options: SessionOptions): Promise<Outcome<readonly Recovery[]>> {
  const found = await findStateDir(options.stateDir, options.uid);
  if (!found.ok || found.value === undefined) return ok([]);
  const records = await readUnsettled(found.value.journal);
  if (!records.some(isOpen)) return ok([]);
  const session = await openHealSession(options);
  if (!session.ok) return session;
  const { recoveries } = session.value;
  await session.value.close();
  return ok(recoveries);
}
