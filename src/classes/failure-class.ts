import type { Candidate } from "../evidence/candidates.ts";
import type { Detected } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import type { Runtime } from "../snapshot/types/runtime.ts";

/** Letter and number as in the reference list, so that people can talk about it: A1, B3, C12, D1, O2, N1. */
export type ClassCode = `${"A" | "B" | "C" | "D" | "N" | "O" | "S" | "V"}${number}`;

/** What it does to the node. Each has a folder of its own. */
export type Category =
  | "creation-blocked"
  | "removal-fails"
  | "leak"
  | "runtime-down"
  | "left-behind"
  | "storage"
  | "other-runtime"
  | "not-a-failure";

/** Everything there is to know about one way a node gets stuck. One file each; see index.ts for the list. */
export interface FailureClass {
  /** Stable kebab-case id; users script against it. */
  readonly id: string;
  readonly code: ClassCode;
  readonly category: Category;
  /** The cause lies outside the sandbox: while it lasts every DEL fails alike, and each retry only feeds the storm. */
  readonly sharedCause?: true;
  /** One daemon or lock that every CNI call on the node waits for: the calls that hang are its consequences. */
  readonly blocksEveryCall?: true;
  readonly title: string;
  /** One paragraph in plain words: what this is, for somebody who was woken up by it. */
  readonly explanation: string;
  /** How it comes about, for somebody who wants to check it in the source. */
  readonly mechanism: string;
  /** Compiled lazily: about 150 regular expressions, which most scans do not need. */
  readonly signatures: () => readonly Signature[];
  /**
   * Lower case. Every line that a signature matches contains one of these, of this class or of another: what contains
   * none is not read any further.
   */
  readonly logFragments: readonly string[];
  /**
   * How it shows on a node, in words; or why a snapshot cannot show it. `conclusive`: it is a matter of files and settings
   * that the snapshot always shows, so a log line about it that the snapshot does not confirm is older than its repair.
   */
  readonly inSnapshot:
    | { readonly visible: true; readonly conclusive?: true; readonly how: string }
    | { readonly visible: false; readonly why: string };
  readonly versions: string;
  readonly treatment: TreatmentInfo;
  /** What people do by hand today, step by step. */
  readonly byHand: readonly string[];
  /** What must never be done, and why. */
  readonly danger: string;
  readonly links: readonly string[];
  /** Which upgrade or setting would prevent it, where the runtime that was found lacks it. */
  readonly prevention?: (runtime: Pick<Runtime, "name" | "version">) => string | undefined;
  /** Pure: what of this class is on the node. Absent where a snapshot cannot show it. */
  readonly detect?: Detect;
}

/**
 * Detects one class. `candidates` are the dead sandboxes that no earlier class has explained: one cause, one finding.
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
   * - `automatic`: unghost heals it when the gates pass.
   * - `attended`: unghost prints the steps and checks the gates; an operator decides.
   * - `none`: nothing to do, or nothing unghost could do.
   */
  readonly mode: "automatic" | "attended" | "none";
  readonly reversible: boolean;
  readonly steps: readonly string[];
  /** What must be proven before the first step. */
  readonly gates: readonly string[];
}

/** Keeps sandboxes from being made or removed. */
export function keepsStuck({ category }: FailureClass): boolean {
  return category === "creation-blocked" || category === "removal-fails";
}
