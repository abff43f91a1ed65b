import { reason } from "../evidence/finding.ts";
import type { Healing } from "../heal/pipeline.ts";
import type { ActionResult } from "../heal/run-action.ts";
import type { LeftAlone } from "../plan/plan.ts";
import type { Planned } from "../plan/scan.ts";
import { buildReport, withHealing } from "./build.ts";
import type { NodeReport } from "./node-report.ts";

const DRY_RUN = reason("dry-run", "not done: --dry-run stops at the plan");

/** A plan as a report: nothing of it was executed. */
export function planReport({
  snapshot,
  diagnosis,
  plan,
}: Pick<Planned, "snapshot" | "diagnosis" | "plan">): NodeReport {
  const results = [
    ...plan.actions.map(
      (action): ActionResult => ({
        action,
        outcome: "skipped",
        reason: DRY_RUN.text,
        code: DRY_RUN.code,
        seconds: 0,
      }),
    ),
    ...plan.leftAlone.map(skipped),
  ];
  return withHealing(buildReport(snapshot, diagnosis), results);
}

/** What was done, and why the rest was skipped. */
export function healingReport({ snapshot, diagnosis, plan, results }: Healing): NodeReport {
  const tried = new Set(results.map(({ action }) => action.finding.id));
  const left = plan.leftAlone.filter(({ finding }) => !tried.has(finding.id)).map(skipped);
  return withHealing(buildReport(snapshot, diagnosis), [...results, ...left]);
}

function skipped({ finding, reason: why }: LeftAlone): ActionResult {
  const action = { finding, rank: "rest", steps: [], reason: why, lane: finding.id } as const;
  return { action, outcome: "skipped", reason: why.text, code: why.code, seconds: 0 };
}
