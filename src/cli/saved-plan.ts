import { resolve } from "node:path";
import * as v from "valibot";
import { JSON_LIMITS, type JsonLimits } from "../host/json-meter.ts";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import { planDigest } from "../plan/saved-plan.ts";
import type { Planned } from "../plan/scan.ts";
import { NodeReportSchema } from "../report/node-report.ts";
import { planReport } from "../report/plan.ts";
import { shownDigest } from "../report/shown-plan.ts";
import { SettingsError } from "./settings/kinds.ts";

/** The report that `heal --dry-run -o json` printed. */
const SavedReportSchema = v.object({
  kind: v.literal("NodeReport"),
  node: v.string(),
  planDigest: v.string(),
  actions: v.array(v.object({ finding: v.string(), code: v.optional(v.string()) })),
});
const ShownSchema = v.object({
  ...SavedReportSchema.entries,
  ...v.pick(NodeReportSchema, ["findings", "actions"]).entries,
});

export interface SavedPlan {
  /** One of planDigest and shownDigest; of a file all that it has. */
  readonly digests: readonly string[];
  /** What it heals, if it is a file. */
  readonly findings?: readonly string[];
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** Of a file, or by its digest alone. */
export function readSavedPlan(given: string, node: string): SavedPlan {
  if (DIGEST.test(given)) return { digests: [given] };
  const json = parseJson(planText(given), PLAN_LIMITS);
  const parsed = v.safeParse(SavedReportSchema, json, { abortEarly: true });
  if (!parsed.success) {
    throw new SettingsError(`--plan: ${given} is not a saved plan: save one with unghost heal --dry-run -o json`);
  }
  const saved = parsed.output;
  if (saved.node !== node) throw new SettingsError(`--plan: ${given} is a plan for ${saved.node}, and this is ${node}`);
  const whole = v.safeParse(ShownSchema, json, { abortEarly: true });
  return {
    digests: [saved.planDigest, ...(whole.success ? [shownDigest(whole.output)] : [])],
    findings: saved.actions.flatMap(({ finding, code }) => (code === "dry-run" ? [finding] : [])),
  };
}

const MAX_PLAN_BYTES = 64 * 1024 * 1024;
/** A plan has fewer than the snapshot that it was made of. */
const PLAN_LIMITS: JsonLimits = { ...JSON_LIMITS, values: 1_500_000 };

function planText(path: string): string {
  const file = readRegularFile(resolveOnHost("/", resolve(path), "follow"), MAX_PLAN_BYTES);
  if (file.kind !== "content") {
    throw new SettingsError(`--plan: cannot read ${path}: it ${file.kind === "gone" ? "does not exist" : file.reason}`);
  }
  return file.text;
}

/** Why the plan of now must not be executed as the saved one, in one sentence; undefined if it is the same. */
export function changeSince({ digests, findings }: SavedPlan, now: Planned): string | undefined {
  const { plan } = now;
  const own = [planDigest(plan), shownDigest(planReport(now))];
  if (digests.every((digest) => own.includes(digest))) return undefined;
  const changed = "the node, or the flags, changed since the plan was saved";
  if (findings === undefined) return `${changed}.`;
  const before = new Set(findings);
  const after = new Set(plan.actions.map(({ finding }) => finding.id));
  const added = [...after].filter((id) => !before.has(id)).length;
  const gone = [...before].filter((id) => !after.has(id)).length;
  const changes = [
    ...(added > 0 ? [`${added} to heal that the saved plan does not have`] : []),
    ...(gone > 0 ? [`${gone} that it has and that cannot be healed now`] : []),
    ...(added + gone === 0 ? ["other steps for the same findings, or the file was edited"] : []),
  ];
  return `${changed}: ${changes.join(", ")}.`;
}
