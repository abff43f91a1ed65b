import { describeError } from "../../host/system-error.ts";
import { ensureRoom, type RoomNeeded } from "../files/disk-space.ts";
import { findStateDir, openStateDir, type StateDir } from "../files/state-dir.ts";
import { type Actor, journalIds } from "../journal/entry.ts";
import { isOpen } from "../journal/history.ts";
import { type Journal, openJournal } from "../journal/journal.ts";
import { type Recovery, recoverOpenEntries } from "../journal/recover.ts";
import { readUnsettled } from "../journal/unsettled.ts";
import { acquireRunLock, type ProcessIdentity } from "../locks/run-lock.ts";
import { type Outcome, ok, refuse } from "../outcome.ts";

export interface SessionOptions {
  readonly stateDir: string;
  readonly hostRoot: string;
  readonly uid: number;
  readonly own: ProcessIdentity;
  readonly clock: () => Date;
  /** 0 ≤ x < 1, as Math.random. */
  readonly random: () => number;
  readonly sleep: (milliseconds: number) => Promise<unknown>;
  /** How long to wait while another run holds the lock. */
  readonly lockWaitMs: number;
  readonly room?: RoomNeeded;
  /** For a process that opens one session after the other. */
  readonly memory?: SessionMemory;
  /** What started the run, for the journal. */
  readonly by?: Actor;
}

/** What a process knows of its own last session: with a journal that is as it left it, nothing can be unfinished. */
export interface SessionMemory {
  settledAs: string | undefined;
}

/** The right to change the node, held until closed. */
export interface HealSession extends HealContext {
  /** What an earlier run had left unfinished, settled before this one begins. */
  readonly recoveries: readonly Recovery[];
  close(): Promise<void>;
}

/** All that must hold before the first touch: a trusted directory, free space, the lock, the journal, nothing unfinished. */
export async function openHealSession(options: SessionOptions): Promise<Outcome<HealSession>> {
  const { own, clock, random, sleep, hostRoot } = options;
  const stateDir = await openStateDir(options.stateDir, options.uid);
  if (!stateDir.ok) return stateDir;
  const room = await ensureRoom(stateDir.value.root, options.room);
  if (!room.ok) return room;
  const newId = journalIds(clock, random);
  const run = newId();
  const lock = await acquireRunLock({
    path: stateDir.value.lock,
    own,
    run,
    waitMs: options.lockWaitMs,
    sleep,
  });
  if (!lock.ok) return lock;
  const journal = await openJournal({
    stateDir: stateDir.value,
    run,
    boot: own.boot,
    clock,
    newId,
    ...(options.by === undefined ? {} : { by: options.by }),
  });
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
    // A long journal takes as long to read as a healing to do.
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

/** What everything that changes the node needs: where it remembers, where it writes it down, and where the host is. */
export interface HealContext {
  readonly stateDir: StateDir;
  readonly journal: Journal;
  /** "/" on the node itself, the mount point of the host in a container. */
  readonly hostRoot: string;
}

/**
 * Finishes what a killed run left open although there is nothing else to do: a file half way to quarantine, a marker in a
 * plugin's cache. Gives what was settled; nothing where nothing was open.
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
