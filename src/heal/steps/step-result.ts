import { type Finding, podOf } from "../../evidence/finding.ts";
import type { JournalAction, KindsOf, StepArea, StepOf } from "../../evidence/step.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import { ProofLost } from "../execution/prove.ts";
import { type HealCode, type HealReason, healReasonInWords } from "../heal-reason.ts";
import type { JournalId } from "../journal/entry.ts";
import type { Intent, Journal } from "../journal/journal.ts";
import type { QuarantineOutcome } from "../quarantine/quarantine.ts";

/**
 * - `done`: executed, and its effect was verified as far as the step itself can.
 * - `unneeded`: there was nothing left to do.
 * - `healed`: the finding is gone, so the following steps are not needed.
 * - `held`: not started, because the run is stopping or plugin calls are paused; nothing was changed.
 * - `refused`: the proof is no longer valid; nothing was touched.
 * - `failed`: tried, without success.
 */
export type StepResult =
  | {
      readonly kind: "done";
      /** How it was done, if there are several ways. */
      readonly detail?: string;
      /** Effects beyond the subject, for the report. */
      readonly effect?: { readonly code: HealCode; readonly words: string };
      readonly journalId?: JournalId | undefined;
      /** The entry can be undone: a file was moved to quarantine. */
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

/** What carries out the steps of one area. */
export type Runs<Area extends StepArea, Tools> = {
  readonly [Kind in KindsOf<Area>]: (step: StepOf<Kind>, finding: Finding, tools: Tools) => Promise<StepResult>;
};

export function held(reason: HealReason): Extract<StepResult, { kind: "held" | "refused" }> {
  return { kind: "held", code: reason.code, reason: healReasonInWords(reason) };
}

export function refused(reason: HealReason, journalId?: JournalId): StepResult {
  const known = journalId === undefined ? {} : { journalId };
  return { kind: "refused", code: reason.code, reason: healReasonInWords(reason), ...known };
}

/** The result for a file that was not moved. */
export function notMoved({ outcome, refusal, id }: Exclude<QuarantineOutcome, { outcome: "healed" }>): StepResult {
  const reason: HealReason = { code: "file-refused", refusal };
  return { kind: outcome, code: reason.code, reason: healReasonInWords(reason), journalId: id };
}

export function failed(reason: HealReason, text?: string): Extract<StepResult, { kind: "failed" }> {
  const withText = text === undefined ? {} : { text };
  return { kind: "failed", code: reason.code, reason: healReasonInWords(reason), ...withText };
}

/** The reason of a change, for the journal. */
export function reasonFor({ id, class: classId, subject }: Finding): Omit<Intent, "action"> {
  const pod = podOf(subject);
  return { finding: id, class: classId, subject: { ...subject, pod: pod === undefined ? undefined : { ...pod } } };
}

export interface JournalTools {
  readonly journal: Pick<Journal, "begin" | "ended">;
}

/** Journals a change, makes it, and journals its end. */
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

/**
 * An error of the runtime is a result, and so is a lost proof; any other exception is an internal error and is
 * rethrown.
 */
export async function attempted(change: () => Promise<StepResult>): Promise<StepResult> {
  try {
    return await change();
  } catch (error) {
    if (error instanceof ProofLost) return refused(error.reason);
    if (error instanceof RuntimeError) return failed({ code: "runtime-error", message: error.message }, error.text);
    throw error;
  }
}
