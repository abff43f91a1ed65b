import * as v from "valibot";

/**
 * - `ok`: it works here.
 * - `missing`: it does not, and something cannot be seen or done for it.
 * - `absent`: there is no such thing on this node, which is ordinary.
 */
export const CheckSchema = v.object({
  id: v.string(),
  status: v.picklist(["ok", "missing", "absent"]),
  detail: v.string(),
  /** What unghost needs it for. */
  neededFor: v.optional(v.string()),
  next: v.optional(v.string()),
});

export type Check = v.InferOutput<typeof CheckSchema>;

export const DoctorReportSchema = v.object({
  apiVersion: v.literal("unghost.dev/v1"),
  kind: v.literal("DoctorReport"),
  version: v.string(),
  node: v.string(),
  hostRoot: v.string(),
  kernel: v.string(),
  os: v.string(),
  runtime: v.object({ name: v.string(), version: v.string(), endpoint: v.string(), reachable: v.boolean() }),
  kubernetes: v.object({ source: v.picklist(["api", "kubelet", "none"]), credentials: v.string() }),
  /** Whether a keeper syncs the files of CNI plugins here, in one line. */
  cniFiles: v.optional(v.object({ keptDurable: v.boolean(), detail: v.string() })),
  checks: v.array(CheckSchema),
});

export type DoctorReport = v.InferOutput<typeof DoctorReportSchema>;

export function ok(id: string, detail: string): Check {
  return { id, status: "ok", detail };
}

export function missing(id: string, detail: string, neededFor: string, next?: string): Check {
  return { id, status: "missing", detail, neededFor, ...(next === undefined ? {} : { next }) };
}

export function absentCheck(id: string, detail: string): Check {
  return { id, status: "absent", detail };
}
