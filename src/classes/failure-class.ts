import type { Candidate } from "./candidates.ts";
import type { Detected } from "./finding.ts";
import type { NodeView } from "./view.ts";

/** Letter and number as in the reference list, so that people can talk about it: A1, B3, C12, D1, O2, N1. */
export type ClassCode = `${"A" | "B" | "C" | "D" | "N" | "O" | "S" | "V"}${number}`;

/** Everything there is to know about one way a node gets stuck. One file each; see index.ts for the list. */
export interface FailureClass {
  /** Stable kebab-case id; users script against it. */
  readonly id: string;
  readonly code: ClassCode;
  readonly title: string;
  /** One paragraph in plain words: what this is, for somebody who was woken up by it. */
  readonly explanation: string;
  /** How it comes about, for somebody who wants to check it in the source. */
  readonly mechanism: string;
  /** Made when asked for: a hundred and fifty patterns are dear to a scan that reads no line of any log. */
  readonly signatures: () => readonly Signature[];
  /** How it shows on a node, in words; or why a snapshot cannot show it. */
  readonly inSnapshot:
    | { readonly visible: true; readonly how: string }
    | { readonly visible: false; readonly why: string };
  readonly versions: string;
  readonly treatment: TreatmentInfo;
  /** What people do by hand today, step by step. */
  readonly byHand: readonly string[];
  /** What must never be done, and why. */
  readonly danger: string;
  readonly links: readonly string[];
  /** Pure: what of this class is on the node. Absent where a snapshot cannot show it. */
  readonly detect?: Detect;
}

/**
 * Looks for one class. `candidates` are the dead sandboxes that no earlier class has explained: one cause, one finding.
 */
export type Detect = (view: NodeView, candidates: readonly Candidate[]) => readonly Detected[];

/** One way the class shows up in a log line, an event or a shell. */
export interface Signature {
  /** How it reads, for people: variable parts in angle brackets. */
  readonly text: string;
  /**
   * Tested against one line as normalise (explain/normalise.ts) leaves it: lower case, no quotes, no backslashes, one
   * space where there was white space. Must be linear: every gap bounded, no nested quantifiers.
   */
  readonly pattern: RegExp;
  /** Must also match somewhere in the same line: for phrases that ordinary programs use too. */
  readonly within?: RegExp;
  /** Must not match anywhere in the same line: the ordinary trouble that reads alike. */
  readonly unless?: RegExp;
  /**
   * - `cause`: the innermost reason; decides alone.
   * - `wrapper`: the frame around a cause; counts when no cause matched.
   * - `symptom`: a bare name lock or time-out that several classes share; counts when nothing better matched.
   */
  readonly level: "cause" | "wrapper" | "symptom";
  /** 0 to 1: how sure one is of this class when the line matches and nothing else is known. */
  readonly confidence: number;
  /** Where one line cannot separate classes: what observation would. */
  readonly decides?: string;
}

export interface TreatmentInfo {
  /**
   * - `automatic`: unghost heals it by itself when the gates hold.
   * - `attended`: unghost prints the steps and checks the gates; a person decides.
   * - `none`: nothing to do, or nothing unghost could do.
   */
  readonly mode: "automatic" | "attended" | "none";
  readonly reversible: boolean;
  readonly steps: readonly string[];
  /** What must be proven before the first step. */
  readonly gates: readonly string[];
}
