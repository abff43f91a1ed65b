import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import * as v from "valibot";
import { resolveOnHost } from "../../host/paths.ts";
import { fileText } from "../../host/safe-fs.ts";
import { parseJson } from "../../host/text.ts";
import { RECEIPT_FILE } from "../home.ts";

const receiptSchema = v.object({
  version: v.literal(1),
  mode: v.picklist(["first", "only"]),
  /** The file of the runtime's configuration: its text before, missing if there was none, and the hash of ours. */
  edit: v.optional(v.object({ path: v.string(), before: v.optional(v.string()), after: v.string() })),
});

/** What install changed outside its own directories. */
export type Receipt = v.InferOutput<typeof receiptSchema>;

export function readReceipt(root: string): Receipt | undefined {
  const parsed = v.safeParse(receiptSchema, parseJson(fileText(resolveOnHost(root, RECEIPT_FILE, "follow"))));
  return parsed.success ? parsed.output : undefined;
}

export function writeReceipt(root: string, receipt: Receipt): void {
  writeFileSync(resolveOnHost(root, RECEIPT_FILE, "follow"), JSON.stringify(receipt), { mode: 0o600, flush: true });
}

export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
