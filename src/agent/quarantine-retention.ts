import type { Logger } from "pino";
import { timeOf } from "../heal/journal/entry.ts";
import type { HistoryRecord } from "../heal/journal/reader.ts";
import { pruneQuarantine, quarantineIds } from "../heal/quarantine/inventory.ts";
import { openHealSession, type SessionOptions } from "../heal/session.ts";
import { findStateDir } from "../heal/state/state-dir.ts";
import { pause } from "../host/poll.ts";
import { describeError, valueOr } from "../host/source.ts";
import { readBoot } from "../node/process-table.ts";
import type { AgentPolicy } from "./policy/agent-policy.ts";

interface RetentionOptions {
  /** The effective policy. */
  readonly policy: () => AgentPolicy;
  readonly session: Omit<SessionOptions, "lockWaitMs">;
  readonly log: Logger;
  /** Default one hour. */
  readonly everyMs?: number;
}

const EVERY_MS = 3_600_000;

/** Deletes quarantine entries older than the policy's retention: at the start, then every hour. */
export function keepQuarantineRetention({ session, ...rest }: RetentionOptions): { close(): Promise<void> } {
  const stop = new AbortController();
  const options: RetentionOptions = { ...rest, session: { ...session, clock: unsteppedClock(session.clock) } };

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      await pruneOnce(options).catch((thrown: unknown) =>
        options.log.warn({ reason: describeError(thrown) }, "quarantine not pruned"),
      );
      await pause(rest.everyMs ?? EVERY_MS, stop.signal);
    }
  }

  const running = run();
  return {
    close: async () => {
      stop.abort();
      await running;
    },
  };
}

async function pruneOnce({ policy, session, log }: RetentionOptions): Promise<void> {
  const { quarantineRetentionMs, classes } = policy();
  // An agent that only observes deletes nothing either.
  const heals = [...classes.values()].some(({ mode }) => mode === "heal");
  if (quarantineRetentionMs === 0 || !heals) return;
  const stateDir = await findStateDir(session.stateDir, session.uid);
  if (!stateDir.ok || stateDir.value === undefined) return;
  const olderThan = new Date(session.clock().getTime() - quarantineRetentionMs);
  // The id contains the time: the journal is read only if an entry is due.
  if (!quarantineIds(stateDir.value).some((id) => timeOf(id) < olderThan)) return;
  const opened = await openHealSession({ ...session, lockWaitMs: 0 });
  if (!opened.ok) {
    log.info({ reason: opened.refusal.message }, "quarantine not pruned");
    return;
  }
  try {
    const mayBeYounger = youngerThanDated(session, olderThan, quarantineRetentionMs);
    const { pruned, failed } = await pruneQuarantine(opened.value, { olderThan, mayBeYounger });
    if (pruned.length > 0) log.info({ entries: pruned.map(({ id }) => id) }, "quarantine pruned");
    for (const { id, reason } of failed) log.warn({ entry: id, reason }, "quarantine entry not pruned");
  } finally {
    await opened.value.close();
  }
}

/** Never ahead of the time that has passed since its first reading: setting the clock forward ages nothing. */
function unsteppedClock(clock: () => Date): () => Date {
  const first = clock().getTime();
  const firstMs = performance.now();
  return () => new Date(Math.min(clock().getTime(), first + performance.now() - firstMs));
}

/**
 * A node without a battery for its clock boots in the past, heals, and is corrected later: what it has put into
 * quarantine is years old at once by its date. But no entry of this boot is older than the boot, and none older than the file in it.
 */
function youngerThanDated(
  { own, hostRoot, clock }: RetentionOptions["session"],
  olderThan: Date,
  retentionMs: number,
): (record: HistoryRecord) => boolean {
  const boot = valueOr(readBoot({ root: hostRoot, now: clock() }), undefined);
  const isBootYoung = boot === undefined || boot.uptimeSeconds * 1000 < retentionMs;
  return (record) => {
    if (record.boot === own.boot && isBootYoung) return true;
    const { action } = record;
    return action.kind === "quarantine-file" && action.before.mtimeNs / 1_000_000n >= BigInt(olderThan.getTime());
  };
}
