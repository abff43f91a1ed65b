import type { AttachmentRead } from "./attachment.ts";
import type { PluginFailure } from "./plugin-failure.ts";

/** What is known of a DEL that the plugin has just failed. */
export interface FailedDel {
  readonly failure: PluginFailure;
  readonly record: AttachmentRead;
  /** Whether the runtime or multus keeps a result of this network for the container, which is written after ADD. */
  readonly hasRuntimeResult: boolean;
  /** The plugin has done this DEL before. */
  readonly isReleased: boolean;
  /** Failures of this DEL in this boot, with this one. */
  readonly failures: number;
  readonly secondsSinceFirst: number;
  /** It is in the queue: the runtime got success before, and asks again. */
  readonly isQueued: boolean;
  /** The failure with what ADD was given; missing if that was not tried, because it is the same or not known. */
  readonly retry?: PluginFailure | "succeeded";
}

/**
 * - `succeed`: the DEL is done, there is nothing more to do.
 * - `queue`: the runtime gets success, and the DEL is repeated until the plugin has done it.
 * - `pass-on`: the runtime gets the plugin's failure, and retries.
 */
export type Decision = { readonly do: "succeed" | "queue" | "pass-on"; readonly code: DecisionCode };

/** Listed with their meaning in docs/guard.md. */
export type DecisionCode =
  | "done-with-recorded-config"
  | "state-gone"
  | "released-before"
  | "queued-before"
  | "add-never-completed"
  | "add-never-completed-queue-full"
  | "daemon-away"
  | "daemon-away-too-long"
  | "plugin-missing"
  | "plugin-missing-too-long"
  | "unknown-error"
  | "unknown-error-too-often"
  | "del-never-came"
  | "queue-full"
  | "queue-not-writable";

export const PASSED_ON_SECONDS = 120;
export const PASSED_ON_TIMES = 5;

export function decide(del: FailedDel): Decision {
  if (del.retry === "succeeded") return { do: "succeed", code: "done-with-recorded-config" };
  const { kind } = del.retry ?? del.failure;
  if (kind === "state-gone") return { do: "succeed", code: "state-gone" };
  if (del.isReleased) return { do: "succeed", code: "released-before" };
  if (del.isQueued) return { do: "queue", code: "queued-before" };
  if (!hasCompleted(del)) return { do: "queue", code: "add-never-completed" };
  if (kind === "other") {
    if (del.failures < PASSED_ON_TIMES) return { do: "pass-on", code: "unknown-error" };
    return { do: "queue", code: "unknown-error-too-often" };
  }
  if (del.secondsSinceFirst < PASSED_ON_SECONDS) return { do: "pass-on", code: kind };
  return { do: "queue", code: `${kind}-too-long` };
}

/** Any trace of a completed ADD counts, also one that a power cut has damaged: the failure is then passed on. */
export function hasCompleted({ record, hasRuntimeResult }: Pick<FailedDel, "record" | "hasRuntimeResult">): boolean {
  if (hasRuntimeResult || record.kind === "unreadable" || record.kind === "unparsable") return true;
  return record.kind === "read" && record.attachment.phase === "completed";
}
