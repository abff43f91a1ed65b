import type { FailureClass } from "../../classes/failure-class.ts";
import { classById } from "../../classes/index.ts";
import { answersIn } from "../../diagnose/explain/lines.ts";
import type { Warning } from "./facts.ts";

/** What a message of kubelet or a controller means, by the same catalogue as `unghost explain`. */
export type Meaning =
  | { readonly kind: "class"; readonly failureClass: FailureClass }
  /** A trouble known elsewhere: no ghost. */
  | { readonly kind: "topic"; readonly id: string; readonly what: string; readonly goTo: string }
  /** An operation failed with an answer that no class has. */
  | { readonly kind: "failure"; readonly answer: string }
  | { readonly kind: "unknown" };

export interface Meant {
  readonly warning: Warning;
  readonly meaning: Meaning;
}

/** Kubelet's own timeout names no reason: another event of the pod does. */
const WAITS_ONLY = "mount-waits";

export function meaningOf(message: string): Meaning {
  const answers = answersIn(message);
  for (const { matches } of answers) {
    const failureClass = matches[0] === undefined ? undefined : classById(matches[0].class);
    if (failureClass !== undefined) return { kind: "class", failureClass };
  }
  for (const { topic } of answers) if (topic !== undefined) return { kind: "topic", ...topic };
  for (const { failure } of answers)
    if (failure?.cause !== undefined) return { kind: "failure", answer: failure.cause };
  return { kind: "unknown" };
}

/** The warning that explains most, and of equals the newest. */
export function bestExplained(warnings: readonly Warning[]): Meant | undefined {
  const meant = warnings.map((warning) => ({ warning, meaning: meaningOf(warning.message) }));
  return meant.toSorted((one, other) => rankOf(other.meaning) - rankOf(one.meaning))[0];
}

function rankOf(meaning: Meaning): number {
  if (meaning.kind === "unknown") return 0;
  return meaning.kind === "topic" && meaning.id === WAITS_ONLY ? 1 : 2;
}
