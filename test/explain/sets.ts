import { readFileSync } from "node:fs";

/** A line as people paste it, with what is true about it. One of `accept`, `mechanism`, `operation`, `topic` and `none` is the expected answer. */
export interface SetLine {
  readonly line: string;
  /** Classes that are right; beside a mechanism or an operation: true as well, although less exact. */
  readonly accept: readonly string[];
  /** No failure of a pod: other software, or a line of an ordinary start, stop or removal. */
  readonly none: boolean;
  /** A cause that has no class yet, by its name in the reference material. */
  readonly mechanism?: string;
  /** What failed, where the cause is not known. */
  readonly operation?: string;
  /** A known trouble that has nothing to do with sandboxes. */
  readonly topic?: string;
  readonly form: string;
  readonly note: string;
}

/** The last set: written before the matching was changed, and its second half was never read. */
export const newestSets = ["newest-first-half", "newest-second-half"] as const;
/** Three sets, each in random halves: the first half is for study, the second only for measuring. */
export const setNames = ["first-half", "second-half", "later-first-half", "later-second-half", ...newestSets] as const;

export function readSet(name: (typeof setNames)[number]): readonly SetLine[] {
  const text = readFileSync(new URL(`./sets/${name}.jsonl`, import.meta.url), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line): SetLine => JSON.parse(line));
}
