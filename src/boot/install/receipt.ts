import * as v from "valibot";

/**
 * What install did besides writing text files, so that uninstall can revert it. It is stored as a comment in one of
 * those files.
 */
const receiptSchema = v.object({
  /** Only if install put it there: one that a package or an operator installed stays. */
  executable: v.optional(v.object({ path: v.string(), sha256: v.string() })),
  /** Directories that did not exist before. */
  directories: v.array(v.string()),
});

export type Receipt = v.InferOutput<typeof receiptSchema>;

export const NO_RECEIPT: Receipt = { directories: [] };

const LINE = /^# Receipt: (\{.*\})$/m;

export function receiptLine(receipt: Receipt): string {
  return `# Receipt: ${JSON.stringify(receipt)}`;
}

/** The receipt in one of our files; empty if it has none, or a damaged one. */
export function receiptIn(text: string | undefined): Receipt {
  const found = LINE.exec(text ?? "")?.[1];
  if (found === undefined) return NO_RECEIPT;
  try {
    const parsed = v.safeParse(receiptSchema, JSON.parse(found));
    return parsed.success ? parsed.output : NO_RECEIPT;
  } catch {
    return NO_RECEIPT;
  }
}
