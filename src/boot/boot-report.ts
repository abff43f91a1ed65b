import * as v from "valibot";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";

/** The result of the hook at the last boot; stored in the state directory, or in /run if the disk is full. */
export const BootReportSchema = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("BootReport"),
  boot: v.string(),
  at: v.string(),
  mode: v.picklist(["before", "after"]),
  /**
   * healed: no ghost is left; left: some ghosts remain; nothing: there was nothing to do; failed: the hook did not
   * complete.
   */
  outcome: v.picklist(["healed", "left", "nothing", "failed"]),
  reason: v.string(),
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
