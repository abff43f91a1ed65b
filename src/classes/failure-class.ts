import type { Candidate } from "../evidence/candidates.ts";
import type { Detected, Finding } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import type { CniFacts, ScratchFile } from "../node/types/cni.ts";
import type { Runtime } from "../node/types/runtime.ts";
import type { MetadataFile, OfflineFacts, Snapshot, StoredContainer } from "../node/types/snapshot.ts";

/** The effect on the node, by the letter of the codes; in the order of the catalogue. */
export const CATEGORIES = {
  A: "creation-blocked",
  B: "removal-fails",
  C: "leak",
  D: "runtime-down",
  S: "left-behind",
  V: "storage",
  O: "other-runtime",
  N: "not-a-failure",
} as const;

export type Category = (typeof CATEGORIES)[keyof typeof CATEGORIES];

/** Everything about one failure class: what the rest of the program asks of one is a field here. See catalogue.ts for the list. */
export interface ClassDefinition {
  /** Stable kebab-case id; users script against it. */
  readonly id: string;
  /** Letter and number as in the reference list, for short references: A1, B3, C12, D1, O2, N1. */
  readonly code: `${keyof typeof CATEGORIES}${number}`;
  /** The cause is outside the sandbox: while it lasts every DEL fails alike, and each retry adds load. */
  readonly sharedCause?: true;
  /** One daemon, lock or limit that every call on the node runs into: hung calls are its consequences. */
  readonly blocksEveryCall?: true;
  readonly title: string;
  /** One paragraph for an operator: what this is. */
  readonly explanation: string;
  /** How it happens, with enough detail to check it in the source. */
  readonly mechanism: string;
  /** Compiled lazily: about 150 regular expressions, which most scans do not need. */
  readonly signatures?: () => readonly Signature[];
  /**
   * Lower case. Every line that a signature matches contains one of these, of this class or of another: other lines are
   * skipped.
   */
  readonly logFragments?: readonly string[];
  /**
   * How it shows on a node, in words; or why a snapshot cannot show it, if nothing here detects it. `conclusive`: it
   * concerns files and settings that the snapshot always shows, so an unconfirmed log line about it is older than its
   * repair.
   */
  readonly inSnapshot: string | { readonly conclusive: true; readonly how: string };
  readonly versions: Affected;
  readonly treatment: TreatmentInfo;
  /** The manual steps without unghost. */
  readonly byHand: readonly string[];
  /** What must never be done, and why. */
  readonly danger: string;
  /** Threads and sources on GitHub: `owner/repository#issue`, or a path such as `owner/repository/pull/1`. */
  readonly links: readonly string[];
  /** Which upgrade or setting would prevent it, if the detected runtime lacks it. */
  readonly prevention?: (runtime: Pick<Runtime, "name" | "version">) => string | undefined;
  /** Pure: the detections of this class on the node. Absent if a snapshot cannot show it. */
  readonly detect?: Detect;
  /** Why this snapshot cannot show it, although it may be there. Asked for by name, it is then unknown. */
  readonly unread?: (snapshot: Snapshot) => string | undefined;
  /** Pure: what only the findings of the other classes show. */
  readonly detectAmong?: (findings: readonly Classified[], view: NodeView) => readonly Detected[];
  /** Pure: what the runtime's database shows while the runtime does not run. */
  readonly detectOffline?: (file: MetadataFile, facts: OfflineFacts) => readonly Detected[];
  /** Ids of stored sandboxes that this class detects and heals once the runtime runs. */
  readonly healedAfterStart?: (facts: OfflineFacts) => readonly string[];
  /** What an error of this class reports is over, as the snapshot shows: it is no cause any more. */
  readonly isOver?: (error: string, view: NodeView) => boolean;
  /** The records because of which the runtime refuses to start: the offline repair removes what is not needed of them. */
  readonly refusedRecords?: (file: MetadataFile) => readonly RefusedRecords[];
  /** The cache files of which a broken one is this class. Those from before the boot are quarantined before the runtime starts. */
  readonly cacheFiles?: (cni: Pick<CniFacts, "results" | "multus" | "flannel">) => readonly ScratchFile[];
  /** Treated without consent, unless its pod has to be deleted. */
  readonly deletesPodWithConsent?: true;
  /** Needs multus: an error in a log never makes a finding of it on a node without. */
  readonly needsMultus?: true;
  /** The pod of its findings is gone from the cluster: an event about it would never be read. */
  readonly podIsGone?: true;
  /** Pods crash in a loop because of it, although it blocks neither creation nor removal. */
  readonly drivesCrashLoops?: true;
  /** Kubelet asks again for attempt numbers that sandboxes of the pod still hold. */
  readonly reusesAttempts?: true;
  /** Dead sandboxes that no class detects, and that the plan treats all the same, are findings of this class. */
  readonly adopts?: "interrupted-removals" | "all-dead" | "unknown-causes";
  /** The number of its findings is a metric of the node. */
  readonly countedAs?: "leftoverContainers" | "volumeAttachmentsStuck";
}

/** Which releases have a class, and what ends it. */
export interface Affected {
  /** The first release, of the component that has to be upgraded where there is one. */
  readonly since: string;
  /** The last release; `open` while the newest one has it. */
  readonly until: string;
  /** The upgrade that ends it; without one, that there is none, and what prevents it. */
  readonly ends: string;
  readonly note?: string;
}

/** As the catalogue has it. */
export interface FailureClass extends Omit<ClassDefinition, "inSnapshot" | "versions"> {
  readonly affected: Affected;
  /** The same in words. */
  readonly versions: string;
  readonly category: Category;
  readonly signatures: () => readonly Signature[];
  readonly logFragments: readonly string[];
  readonly inSnapshot: { readonly conclusive?: true; readonly how: string } | { readonly why: string };
}

export interface Classified {
  readonly failureClass: FailureClass;
  readonly finding: Finding;
}

export type RefusedRecords =
  | ({ readonly kind: "same-name" } & SameName)
  /** A record of the 2.x sandbox store. */
  | { readonly kind: "incomplete"; readonly id: string };

/** Records that reserve the same name when the runtime starts. */
export interface SameName {
  readonly name: string;
  readonly records: readonly StoredContainer[];
}

/**
 * Detects one class. `candidates` are the dead sandboxes that no earlier class has explained: one cause, one finding.
 */
export type Detect = (view: NodeView, candidates: readonly Candidate[]) => readonly Detected[];

/** One form of the class in a log line, an event or a shell. */
export interface Signature {
  /** The text for readers: variable parts in angle brackets. */
  readonly text: string;
  /**
   * Tested against one line after normalise (explain/normalise.ts): lower case, no quotes, no backslashes, single
   * spaces. Must be linear: every gap bounded, no nested quantifiers.
   */
  readonly pattern: RegExp;
  /** Must also match in the same line: for phrases that other programs use too. */
  readonly within?: RegExp;
  /** Must not match in the same line: similar errors of other causes. */
  readonly unless?: RegExp;
  /** The text must not report only the opposite: the same words mean one thing on ADD and another on DEL. */
  readonly during?: "creating" | "removing";
  /**
   * - `cause`, which is the default: the innermost reason; decides alone.
   * - `wrapper`: the frame around a cause; counts if no cause matched.
   * - `symptom`: a bare name lock or timeout that several classes share; counts if nothing else matched.
   */
  readonly level?: "cause" | "wrapper" | "symptom";
  /** 0 to 1: the probability of this class if only this line is known. */
  readonly confidence: number;
  /** If one line cannot separate classes: which observation would. */
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

/** Whether the class blocks the creation or removal of sandboxes. */
export function keepsStuck({ category }: FailureClass): boolean {
  return category === "creation-blocked" || category === "removal-fails";
}
