import { type Finding, podOf } from "../../evidence/finding.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { ProofLost } from "../execution/prove.ts";
import { type HealCode, type HealReason, healReasonInWords } from "../heal-reason.ts";
import type { JournalAction, JournalId } from "../journal/entry.ts";
import type { Intent, Journal } from "../journal/journal.ts";
import type { QuarantineOutcome } from "../quarantine/quarantine.ts";

/**
 * - `done`: made, and seen to have taken effect as far as the step itself can see.
 * - `unneeded`: there was nothing left to do.
 * - `healed`: the finding is gone without the steps after this one.
 * - `held`: not started, because the run is to end or plugins are paused; nothing was changed.
 * - `refused`: the proof did not hold any more; nothing was touched.
 * - `failed`: tried, without success.
 */
export type StepResult =
  | {
      readonly kind: "done";
      /** How, where there are several ways. */
      readonly detail?: string;
      /** What was seen of its effect beyond the subject, for the report. */
      readonly effect?: { readonly code: HealCode; readonly words: string };
      readonly journalId?: JournalId | undefined;
      /** The entry can be taken back: a file was moved to quarantine. */
      readonly undoable?: true;
      /** The directory that the logs of its containers were copied to. */
      readonly logsSavedTo?: string;
      /** Must run when the action ends, however it ends. */
      readonly cleanUp?: () => Promise<void>;
    }
  | { readonly kind: "unneeded" }
  | { readonly kind: "healed" }
  | {
      readonly kind: "held" | "refused";
      /** The code, for decisions; `reason` is for users. */
      readonly code: HealCode;
      readonly reason: string;
      readonly journalId?: JournalId | undefined;
    }
  | {
      readonly kind: "failed";
      readonly code: HealCode;
      readonly reason: string;
      readonly journalId?: JournalId | undefined;
      /** The runtime's error text, for the storm brake. */
      readonly text?: string;
    };

export function held(reason: HealReason): Extract<StepResult, { kind: "held" | "refused" }> {
  return { kind: "held", code: reason.code, reason: healReasonInWords(reason) };
}

export function refused(reason: HealReason, journalId?: JournalId): StepResult {
  const known = journalId === undefined ? {} : { journalId };
  return { kind: "refused", code: reason.code, reason: healReasonInWords(reason), ...known };
}

/** A file stayed where it was. */
export function notMoved({ outcome, refusal, id }: Exclude<QuarantineOutcome, { outcome: "healed" }>): StepResult {
  const reason: HealReason = { code: "file-refused", refusal };
  return { kind: outcome, code: reason.code, reason: healReasonInWords(reason), journalId: id };
}

export function failed(reason: HealReason, text?: string): Extract<StepResult, { kind: "failed" }> {
  const withText = text === undefined ? {} : { text };
  return { kind: "failed", code: reason.code, reason: healReasonInWords(reason), ...withText };
}

/** Why something is done, as the journal keeps it. */
export function reasonFor({ id, class: classId, subject }: Finding): Omit<Intent, "action"> {
  const pod = podOf(subject);
  return { finding: id, class: classId, subject: { ...subject, pod: pod === undefined ? undefined : { ...pod } } };
}

export interface JournalTools {
  readonly journal: Pick<Journal, "begin" | "ended">;
}

/** Announces a change, makes it, and writes down how it ended. */
export async function journaled(
  { journal }: JournalTools,
  finding: Finding,
  action: JournalAction,
  change: () => Promise<StepResult>,
): Promise<StepResult> {
  const entry = await journal.begin({ ...reasonFor(finding), action });
  if (!entry.ok) return refused({ code: "journal-refused", refusal: entry.refusal });
  const journalId = entry.value;
  const result = await attempted(change);
  journal.ended(journalId, DONE_OUTCOME[result.kind], wordsOf(result));
  return result.kind === "healed" || result.kind === "unneeded" ? result : { ...result, journalId };
}

function wordsOf(result: StepResult): string | undefined {
  if ("reason" in result) return result.reason;
  return "detail" in result ? result.detail : undefined;
}

const DONE_OUTCOME = {
  done: "healed",
  healed: "healed",
  unneeded: "skipped",
  held: "skipped",
  refused: "refused",
  failed: "failed",
} as const;

/** The runtime's refusal is a result, and so is a lost proof; anything else that is thrown is a mistake of ours and goes on. */
export async function attempted(change: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await change();
  } catch (error) {
    if (error instanceof ProofLost) return refused(error.reason);
    if (error instanceof RuntimeError) return failed({ code: "runtime-error", message: error.message }, error.text);
    throw error;
  }
}
