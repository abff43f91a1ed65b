import { createHash } from "node:crypto";
import { printable } from "../host/text.ts";
import { renderFindingGroups, renderFindings } from "./findings-table.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { type PlannedStep, stepWords } from "./step-words.ts";
import { countByKind, paint, wrap } from "./words.ts";

/** What of a dry run's report an operator decides by. */
type ShownPlan = Pick<NodeReport, "node" | "observedAt" | "findings" | "problems" | "actions">;

interface ShownAction {
  readonly finding: ReportedFinding;
  readonly changes: readonly PlannedStep[];
}

/** Only what is planned: a dry run also lists what heal would leave alone. */
function planned({ findings, actions = [] }: Pick<ShownPlan, "findings" | "actions">): readonly ShownAction[] {
  const byId = new Map(findings.map((finding) => [finding.id, finding]));
  return actions.flatMap(({ finding: id, code, changes = [] }) => {
    const finding = byId.get(id);
    return code !== "dry-run" || finding === undefined ? [] : [{ finding, changes }];
  });
}

/**
 * Of a plan's digest, and of what an operator is shown: findings, what they are about, and the steps in words. The
 * node compares it before a heal, because the report may have come through other hands than the plan.
 */
export function shownDigest(report: Pick<NodeReport, "findings" | "actions" | "planDigest">): string {
  const rows = planned(report).map(({ finding: { id, class: failureClass, subject }, changes }) => {
    const { type, sandboxId, name, pod, path, pid } = subject;
    const about = [type, sandboxId, name, pod?.namespace, pod?.name, pod?.attempt, path, pid];
    return JSON.stringify([id, failureClass, about, stepWords(changes)]);
  });
  const text = [report.planDigest ?? "", ...rows.toSorted()].join("\n");
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** Follows the sentence with which a node refuses a plan that is not the one of now. */
export const NEW_PLAN = "Make a new plan:";

const MOST_ROWS = 20;
const MOST_LEFT_ALONE = 10;

/** The plan of a dry run's report, for an operator somewhere else. Names in it may be hostile. */
export function renderShownPlan(report: ShownPlan, columns: number): string {
  const actions = planned(report);
  const node = printable(report.node);
  const leftAlone = (report.actions ?? []).filter(({ code }) => code !== "dry-run");
  if (actions.length + leftAlone.length === 0) return `Nothing to heal on ${node}.\n`;
  const left = leftAlone.length === 0 ? "" : `, leave ${leftAlone.length} alone`;
  const findings = actions.map(({ finding }) => finding);
  const what = actions.length === 0 ? `nothing to heal on ${node}` : `heal ${countByKind(findings)} on ${node}`;
  const changesOf = new Map(actions.map(({ finding: { id }, changes }) => [id, changes]));
  const table = {
    observedAt: report.observedAt,
    ink: paint(false),
    last: { heading: "UNDO", of: ({ id }: ReportedFinding) => undoWords(changesOf.get(id) ?? []) },
    width: columns,
    headings: true,
  };
  return `${[
    `Plan: ${what}${left}`,
    ...(actions.length === 0
      ? []
      : (actions.length > MOST_ROWS ? renderFindingGroups : renderFindings)(findings, table)),
    ...stepLines(actions, columns),
    ...leftAlone
      .slice(0, MOST_LEFT_ALONE)
      .map(({ finding, reason = "" }) => wrap(`  ${printable(`left alone: ${finding}: ${reason}`)}`, columns, "    ")),
    ...(leftAlone.length > MOST_LEFT_ALONE ? [`  … and ${leftAlone.length - MOST_LEFT_ALONE} more`] : []),
    ...report.problems.map(({ source, problem }) => wrap(printable(`Not read: ${source}: ${problem}`), columns, "  ")),
  ].join("\n")}\n`;
}

function undoWords(changes: readonly PlannedStep[]): string {
  const reversible = changes.filter(({ undo }) => undo).length;
  return reversible === 0 ? "no" : reversible === changes.length ? "yes" : "in part";
}

/** What each step changes; of many findings with the same steps, the first one's. */
function stepLines(actions: readonly ShownAction[], columns: number): readonly string[] {
  const groups = Map.groupBy(actions, ({ finding, changes }) =>
    actions.length > MOST_ROWS ? [finding.class, ...changes.map(({ step }) => step)].join("\n") : finding.id,
  );
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const more = others.length === 0 ? "" : ` (and ${others.length} like it)`;
    const steps = stepWords(first.changes).join(", then ");
    return [wrap(printable(`${first.finding.class}${more}: ${steps}`), columns, "  ")];
  });
}
