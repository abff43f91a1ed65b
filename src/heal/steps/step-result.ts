import { type Finding, podOf, type Reason, reason } from "../../evidence/finding.ts";
import type { JournalAction, KindsOf, StepArea, StepOf } from "../../evidence/step.ts";
import type { OpenCluster } from "../../kube/cluster-credentials.ts";
import { comparePidNamespace, FOREIGN_PID_NAMESPACE, WANTS_HOST_PID } from "../../node/machine.ts";
import type { CniConfig } from "../../node/types/cni.ts";
import { RuntimeError } from "../../runtime/errors.ts";
import type { JournalId } from "../journal/entry.ts";
import type { HealContext, Intent } from "../journal/journal.ts";
import type { Interruption, Sleep, Waits } from "../proof/fresh-facts.ts";
import { ProofLost } from "../proof/prove.ts";
import type { RuntimeAccess } from "../proof/runtime-access.ts";
import type { Turn } from "../proof/turns.ts";
import type { QuarantineOutcome } from "../quarantine/quarantine.ts";
import type { Refusal } from "../state/outcome.ts";

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
      readonly effect?: Reason;
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
      readonly code: string;
      readonly reason: string;
      readonly journalId?: JournalId | undefined;
    }
  | {
      readonly kind: "failed";
      readonly code: string;
      readonly reason: string;
      readonly journalId?: JournalId | undefined;
      /** The runtime's error text, for the storm brake. */
      readonly text?: string;
    };

/** What the steps work with. */
export interface StepTools extends HealContext, Omit<RuntimeAccess, "close"> {
  /** Missing if nothing in the cluster may be changed. */
  readonly cluster?: OpenCluster;
  readonly conf: CniConfig | undefined;
  readonly binDirs: readonly string[];
  readonly waits: Waits;
  readonly sleep: Sleep;
  readonly interruption: Interruption;
  readonly turn: Turn;
}

/** What carries out the steps of one area. */
export type Runs<Area extends StepArea> = {
  readonly [Kind in KindsOf<Area>]: (step: StepOf<Kind>, finding: Finding, tools: StepTools) => Promise<StepResult>;
};

export function held({ code, text }: Reason): Extract<StepResult, { kind: "held" | "refused" }> {
  return { kind: "held", code, reason: text };
}

export function refused({ code, text }: Reason, journalId?: JournalId): StepResult {
  const known = journalId === undefined ? {} : { journalId };
  return { kind: "refused", code, reason: text, ...known };
}

/** The result for a file that was not moved. */
export function notMoved({ outcome, refusal, id }: Exclude<QuarantineOutcome, { outcome: "healed" }>): StepResult {
  const { code, text } = fileRefused(refusal);
  return { kind: outcome, code, reason: text, journalId: id };
}

/** `error`: the runtime's own text, for the storm brake. */
export function stepFailed({ code, text }: Reason, error?: string): Extract<StepResult, { kind: "failed" }> {
  const withText = error === undefined ? {} : { text: error };
  return { kind: "failed", code, reason: text, ...withText };
}

export function fileRefused({ message }: Refusal): Reason {
  return reason("file-refused", message);
}

export function journalRefused({ message, next }: Refusal): Reason {
  return reason("journal-refused", `${message} ${next}`);
}

export function notAPlainFile(path: string): Reason {
  return reason("not-a-plain-file", `${path} is not a plain file. Inspect it, move it away, then heal again.`);
}

/** No process may be signalled from another pid namespace than the host's. */
export function foreignPidNamespace(hostRoot: string): Reason | undefined {
  const namespace = comparePidNamespace(hostRoot);
  if (namespace.kind !== "foreign") return undefined;
  return reason(FOREIGN_PID_NAMESPACE, `no process is signalled: ${namespace.reason}; ${WANTS_HOST_PID}`);
}

/** The reason of a change, for the journal. */
export function reasonFor({ id, class: classId, subject, evidence }: Finding): Omit<Intent, "action"> {
  const pod = podOf(subject);
  const about = { ...subject, pod: pod === undefined ? undefined : { ...pod } };
  return { finding: id, class: classId, subject: about, evidence };
}

/** Journals a change, makes it, and journals its end. */
export async function journaled(
  { journal }: Pick<StepTools, "journal">,
  finding: Finding,
  action: JournalAction,
  change: () => Promise<StepResult>,
): Promise<StepResult> {
  const entry = await journal.begin({ ...reasonFor(finding), action });
  if (!entry.ok) return refused(journalRefused(entry.refusal));
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
    if (error instanceof RuntimeError) return stepFailed(reason("runtime-error", error.message), error.text);
    throw error;
  }
}
