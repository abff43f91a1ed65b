/**
 * Something that may have happened to the node. A trigger only hints that a scan is due; the scan decides. So none
 * of them needs to be complete or right, and all of them may be missing.
 */
export interface Hint {
  /** Which trigger it was, for the log. */
  readonly from: string;
  /** `now`: no more of its kind follow in the next moments that would be worth waiting for. */
  readonly urgency: "soon" | "now";
}

export type OnHint = (hint: Hint) => void;
