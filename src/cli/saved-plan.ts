import { resolve } from "node:path";
import * as v from "valibot";
import { JSON_LIMITS, type JsonLimits } from "../host/json-meter.ts";
import { resolveOnHost } from "../host/paths.ts";
import { readRegularFile } from "../host/safe-fs.ts";
import { parseJson } from "../host/text.ts";
import type { Plan } from "../plan/plan.ts";
import { planDigest } from "../plan/saved-plan.ts";
import { SettingsError } from "./settings/kinds.ts";

/** What `heal --plan` needs of the report that `heal --dry-run -o json` printed. */
const SavedPlanSchema = v.object({
  kind: v.literal("NodeReport"),
  node: v.string(),
  planDigest: v.string(),
  actions: v.array(v.object({ finding: v.string(), action: v.string(), code: v.optional(v.string()) })),
});
type SavedPlan = v.InferOutput<typeof SavedPlanSchema>;

export function readSavedPlan(path: string, node: string): SavedPlan {
  const parsed = v.safeParse(SavedPlanSchema, parseJson(planText(path), PLAN_LIMITS), { abortEarly: true });
  if (!parsed.success) {
    throw new SettingsError(`--plan: ${path} is not a saved plan: save one with unghost heal --dry-run -o json`);
  }
  const saved = parsed.output;
  if (saved.node !== node) throw new SettingsError(`--plan: ${path} is a plan for ${saved.node}, and this is ${node}`);
  return saved;
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

/** How the plan of now differs from the saved one, in one sentence; undefined if it does not. */
export function changeSince(saved: SavedPlan, now: Plan): string | undefined {
  if (planDigest(now) === saved.planDigest) return undefined;
  const before = new Set(saved.actions.flatMap(({ finding, code }) => (code === "dry-run" ? [finding] : [])));
  const after = new Set(now.actions.map(({ finding }) => finding.id));
  const added = [...after].filter((id) => !before.has(id)).length;
  const gone = [...before].filter((id) => !after.has(id)).length;
  const changes = [
    ...(added > 0 ? [`${added} to heal that the saved plan does not have`] : []),
    ...(gone > 0 ? [`${gone} that it has and that cannot be healed now`] : []),
    ...(added + gone === 0 ? ["other steps for the same findings"] : []),
  ];
  return `the node, or the flags, changed since the plan was saved: ${changes.join(", ")}.`;
}
