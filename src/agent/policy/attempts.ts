import type { Finding } from "../../classes/finding.ts";
import type { ActionOutcome, ActionResult } from "../../heal/run-action.ts";
import { sha256Of } from "../../heal/sha256.ts";
import type { AgentPolicy, ClassPolicy } from "./agent-policy.ts";

/** One healing of one subject that was begun. */
export interface Attempt {
  /** performance.now() at its end. */
  readonly atMs: number;
  readonly outcome: ActionOutcome;
  readonly reason?: string;
  /** What exactly was treated: the same id may come to stand for another thing. */
  readonly subject: string;
}

/** What was tried on one finding, oldest first. */
export interface LedgerEntry {
  readonly class: string;
  readonly attempts: readonly Attempt[];
}

/** By finding id. */
export type Ledger = ReadonlyMap<string, LedgerEntry>;

export const EMPTY_LEDGER: Ledger = new Map();

/** However long the failures go on, it is tried again after this. */
const LONGEST_COOL_DOWN_MS = 3_600_000;
/** More findings than a broken node has. Without a bound a flood of them would fill the memory of an agent that runs for years. */
const MOST_ENTRIES = 2000;

/** Writes down what became of a healing. What no decision can depend upon any more is dropped on the way. */
export function recordAttempts(
  ledger: Ledger,
  results: readonly Pick<ActionResult, "action" | "outcome" | "reason">[],
  policy: AgentPolicy,
  nowMs: number,
): Ledger {
  const entries = new Map(ledger);
  for (const { action, outcome, reason } of results) {
    const { finding } = action;
    const before = entries.get(finding.id)?.attempts ?? [];
    const attempt: Attempt = {
      atMs: nowMs,
      outcome,
      ...(reason === undefined ? {} : { reason }),
      subject: subjectIdentity(finding),
    };
    // Taken out first, so that the map stays in the order of the last attempt.
    entries.delete(finding.id);
    entries.set(finding.id, { class: finding.class, attempts: [...before, attempt] });
  }
  return forgetOld(entries, policy, nowMs);
}

/** Drops attempts that neither budget nor cool-down counts any more, and the oldest of too many entries. */
export function forgetOld(ledger: Ledger, policy: AgentPolicy, nowMs: number): Ledger {
  const kept = [...ledger].flatMap(([id, entry]) => {
    const within = policy.classes.get(entry.class)?.attemptsWithinMs ?? 0;
    const since = nowMs - Math.max(within, LONGEST_COOL_DOWN_MS);
    const attempts = entry.attempts.filter(({ atMs }) => atMs > since);
    return attempts.length === 0 ? [] : [[id, { ...entry, attempts }] as const];
  });
  return new Map(kept.slice(-MOST_ENTRIES));
}

/** The attempts that a budget counts: on this very subject, within the period, and really begun. */
export function countedAttempts(
  entry: LedgerEntry | undefined,
  finding: Finding,
  { attemptsWithinMs }: ClassPolicy,
  nowMs: number,
): readonly Attempt[] {
  if (entry === undefined) return [];
  const subject = subjectIdentity(finding);
  return entry.attempts.filter(
    // What was skipped met our own brake before anything was touched.
    (attempt) =>
      attempt.outcome !== "skipped" && attempt.subject === subject && attempt.atMs > nowMs - attemptsWithinMs,
  );
}

/** When the pause after the last attempt is over; it doubles with each failure in a row, and a success ends the row. */
export function coolDownEndsMs(entry: LedgerEntry | undefined, { coolDownMs }: ClassPolicy): number | undefined {
  const last = entry?.attempts.at(-1);
  if (entry === undefined || last === undefined) return undefined;
  const begun = entry.attempts.filter(({ outcome }) => outcome !== "skipped");
  const lastSuccess = begun.findLastIndex(({ outcome }) => outcome === "healed");
  const failures = begun.length - 1 - lastSuccess;
  const doubled = coolDownMs * 2 ** Math.max(0, failures - 1);
  return last.atMs + Math.max(coolDownMs, Math.min(doubled, LONGEST_COOL_DOWN_MS));
}

/**
 * Tells a new thing under an old name (a pid, an attachment, a namespace file made again) from the one that failed. Only
 * compared, and kept for thousands of subjects: its hash is enough.
 */
function subjectIdentity({ subject, cure }: Finding): string {
  return sha256Of(
    JSON.stringify([subject, cure], (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value)),
  );
}
