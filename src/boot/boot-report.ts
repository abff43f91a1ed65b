import * as v from "valibot";
import { parseJson } from "../host/json.ts";
import { readRegularFile } from "../host/safe-fs.ts";

/** What the hook did at the last boot; kept in the state directory, and in /run where the disk is full. */
export const BootReportSchema = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("BootReport"),
  boot: v.string(),
  at: v.string(),
  mode: v.picklist(["before", "after"]),
  /** healed: all is well; left: some ghosts remain; nothing: no reason to act; failed: could not do its work. */
  outcome: v.picklist(["healed", "left", "nothing", "failed"]),
  reason: v.string(),
  cleanShutdown: v.boolean(),
  healed: v.number(),
  left: v.array(v.string()),
  seconds: v.number(),
});

export type BootReport = v.InferOutput<typeof BootReportSchema>;

export function readBootReport(path: string): BootReport | undefined {
  const file = readRegularFile(path);
  if (file.kind !== "content") return undefined;
  const parsed = v.safeParse(BootReportSchema, parseJson(file.text));
  return parsed.success ? parsed.output : undefined;
}
