import { isDeepStrictEqual } from "node:util";
import type { Finding } from "../../evidence/finding.ts";
import { sharedCause } from "../../heal/proof/storm-brake.ts";
import { sha256Of } from "../../heal/quarantine/file-identity.ts";
import type { ActionOutcome, ActionResult } from "../../heal/run-action.ts";
import type { PlannedAction } from "../../plan/plan.ts";
import type { Retries } from "../../report/node-state.ts";
import type { AgentPolicy, ClassPolicy } from "./agent-policy.ts";

/** One started heal of one subject. */
export interface Attempt {
  /** performance.now() at its end; negative if it ended before this process started. */
  readonly atMs: number;
  /** `interrupted`: the agent ended during it, and its outcome is unknown. */
  readonly outcome: ActionOutcome | "interrupted";
  readonly reason?: string;
  /** Identifies the subject: the same id may later refer to another object. */
  readonly subject: string;
}

/** The attempts on one finding, oldest first. */
export interface LedgerEntry {
  readonly class: string;
  readonly attempts: readonly Attempt[];
  /** The shared cause of the last failure has ended since: it is tried again at once, and that failure does not count. */
  readonly causeEnded?: true;
}

/** By finding id. */
export type Ledger = ReadonlyMap<string, LedgerEntry>;

/** By finding id: when the next attempt may start. For readers of the file only. */
export type Outlook = ReadonlyMap<string, Pick<Retries, "nextTryAt" | "givenUp">>;

/** The maximum back-off. */
const LONGEST_COOL_DOWN_MS = 3_600_000;
/**
 * More findings than a broken node has. Without a limit a flood of them would fill the memory of an agent that runs for
 * years.
 */
const MAX_ENTRIES = 2000;
/** No budget has more, so nothing that is decided depends on an attempt before these. */
export const MAX_ATTEMPTS = 100;
const LEAST_BETWEEN_CAUSES_MS = 60_000;
/** Some errors quote a plugin's whole output. */
const LONGEST_REASON = 500;

/** The ledger in the order of the last attempts: the oldest are first. */
export class AttemptBook {
  readonly #entries: Map<string, LedgerEntry>;
  readonly #onChange: () => void;
  #underWay: readonly Finding[] = [];
  #outlook: Outlook = new Map();
  #causeEndedMs = Number.NEGATIVE_INFINITY;

  constructor(remembered: Ledger = new Map(), onChange: () => void = () => undefined) {
    this.#entries = new Map(remembered);
    this.#onChange = onChange;
  }

  get ledger(): Ledger {
    return this.#entries;
  }

  get outlook(): Outlook {
    return this.#outlook;
  }

  foresee(outlook: Outlook): void {
    if (isDeepStrictEqual(outlook, this.#outlook)) return;
    this.#outlook = outlook;
    this.#onChange();
  }

  /** These are about to be healed. They count from their end on, or at once if this process is killed before. */
  begin(actions: readonly PlannedAction[]): void {
    this.#underWay = actions.map(({ finding }) => finding);
    this.#onChange();
  }

  /** Writes down what became of a healing. What no decision can depend on any more is dropped on the way. */
  record(
    results: readonly Pick<ActionResult, "action" | "outcome" | "reason">[],
    policy: AgentPolicy,
    nowMs: number,
  ): void {
    this.#underWay = [];
    for (const { action, outcome, reason } of results) {
      const { finding } = action;
      const since = nowMs - rememberedMs(policy.classes.get(finding.class));
      const before = this.#entries.get(finding.id)?.attempts.filter((attempt) => mayMatter(attempt, since)) ?? [];
      put(this.#entries, finding, before, { atMs: nowMs, outcome, reason: reason?.slice(0, LONGEST_REASON) });
    }
    this.#forgetOld(policy, nowMs);
    this.#onChange();
  }

  /**
   * What network calls waited for works again: attempts that failed because of it are no reason to wait any longer. A
   * daemon that comes and goes causes one round of attempts in this time.
   */
  causeEnded(nowMs: number): void {
    if (nowMs - this.#causeEndedMs < LEAST_BETWEEN_CAUSES_MS) return;
    this.#causeEndedMs = nowMs;
    for (const [id, entry] of this.#entries) {
      const last = entry.attempts.at(-1);
      if (last !== undefined && isForSharedCause(last)) this.#entries.set(id, { ...entry, causeEnded: true });
    }
  }

  /** The ledger for the next process, in case this one ends now: in-flight attempts count, too. */
  ifEndedNow(nowMs: number): Ledger {
    const entries = new Map(this.#entries);
    const end = { atMs: nowMs, outcome: "interrupted", reason: "unghost was ended in the middle of it" } as const;
    for (const finding of this.#underWay) {
      const before = entries.get(finding.id)?.attempts ?? [];
      put(entries, finding, before, end);
    }
    return entries;
  }

  #forgetOld(policy: AgentPolicy, nowMs: number): void {
    for (const [id, { class: classId, attempts }] of this.#entries) {
      const lastMs = attempts.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY;
      const isOld = lastMs <= nowMs - rememberedMs(policy.classes.get(classId));
      if (!isOld && this.#entries.size <= MAX_ENTRIES) return;
      this.#entries.delete(id);
    }
  }
}

/** Removed first, so that the map stays in the order of the last attempt. */
function put(
  entries: Map<string, LedgerEntry>,
  finding: Finding,
  before: readonly Attempt[],
  last: Omit<Attempt, "subject">,
): void {
  const attempts = [...before, { ...last, subject: subjectIdentity(finding) }].slice(-MAX_ATTEMPTS);
  entries.delete(finding.id);
  entries.set(finding.id, { class: finding.class, attempts });
}

/** Neither budget nor cool-down needs older ones. */
function rememberedMs(policy: ClassPolicy | undefined): number {
  return Math.max(policy?.attemptsWithinMs ?? 0, policy?.coolDownMs ?? 0, LONGEST_COOL_DOWN_MS);
}

/** A skipped attempt was stopped by our own brake before any change: it only delays the next one. */
function mayMatter({ atMs, outcome }: Attempt, since: number): boolean {
  return outcome !== "skipped" && atMs > since;
}

/** The attempts that a budget counts: on this subject, within the period, and not skipped. */
export function countedAttempts(
  entry: LedgerEntry | undefined,
  finding: Finding,
  { attemptsWithinMs }: ClassPolicy,
  nowMs: number,
): readonly Attempt[] {
  if (entry === undefined) return [];
  const subject = subjectIdentity(finding);
  const since = nowMs - attemptsWithinMs;
  const counted = entry.attempts.filter((attempt) => attempt.subject === subject && mayMatter(attempt, since));
  return entry.causeEnded === true ? counted.filter((attempt) => !isForSharedCause(attempt)) : counted;
}

/** Stopped by the brake of a run, or failed for a cause outside the sandbox. */
function isForSharedCause({ outcome, reason = "" }: Attempt): boolean {
  return outcome === "skipped" || (outcome === "failed" && sharedCause(reason) !== undefined);
}

/**
 * When the back-off after the last attempt ends; it doubles with each consecutive failure, and a success resets it. An
 * attempt that was cut short by the agent's own end causes no back-off: it may have succeeded.
 */
export function coolDownEndsMs(entry: LedgerEntry | undefined, { coolDownMs }: ClassPolicy): number | undefined {
  if (entry?.causeEnded === true) return undefined;
  const ended = entry?.attempts.filter(({ outcome }) => outcome !== "interrupted") ?? [];
  const last = ended.at(-1);
  if (last === undefined) return undefined;
  const started = ended.filter(({ outcome }) => outcome !== "skipped");
  const lastSuccess = started.findLastIndex(({ outcome }) => outcome === "healed");
  const failures = started.length - 1 - lastSuccess;
  const doubled = coolDownMs * 2 ** Math.max(0, failures - 1);
  return last.atMs + Math.max(coolDownMs, Math.min(doubled, LONGEST_COOL_DOWN_MS));
}

/**
 * Distinguishes a new subject under an old name (a pid, an attachment, a recreated namespace file) from the one that
 * failed. Only compared, and kept for thousands of subjects, so a hash is enough.
 */
function subjectIdentity({ subject, cure }: Finding): string {
  return sha256Of(
    JSON.stringify([subject, cure], (_key, value: unknown) => (typeof value === "bigint" ? value.toString() : value)),
  );
}
