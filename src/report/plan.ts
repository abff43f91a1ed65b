import { classById } from "../classes/index.ts";
import type { Reason } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { printable } from "../host/text.ts";
import type { LeftAlone, Plan, PlannedAction } from "../plan/plan.ts";
import { reportedFinding } from "./build.ts";
import {
  evidenceLines,
  type FindingsTable,
  renderFindingGroups,
  renderFindings,
  renderWide,
} from "./findings-table.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { shortAction, stepWords } from "./step-words.ts";
import { renderProblems } from "./table.ts";
import { countByKind, type Paint, paint, subjectInWords, type TextOptions, wrap } from "./words.ts";

/** The context of the plan. */
export interface PlanContext {
  readonly view: NodeView;
  readonly problems: NodeReport["problems"];
  /** `edge-7`, or `edge-7 for shop/web-0`. */
  readonly where: string;
  /** Manual classes that the operator allowed. */
  readonly allowed?: readonly string[];
}

export interface PlanOptions extends TextOptions {
  readonly wide?: boolean;
  readonly screenColumns?: number;
}

const NAMED_SUBJECTS = 10;
const MAX_ROWS = 20;

/** `3 ghosts, 1 leak on edge-7`: the subject of the question. */
export function planSubject(plan: Plan, { view, where }: Pick<PlanContext, "view" | "where">): string {
  return `${countByKind(plan.actions.map(({ finding }) => reportedFinding(finding, view)))} on ${printable(where)}`;
}

/** Renders the plan: each finding with its steps, what is skipped, and what was not read. */
export function renderPlan(plan: Plan, context: PlanContext, options: PlanOptions): string {
  const { columns, verbose } = options;
  const ink = paint(options.colour);
  const left = plan.leftAlone.length === 0 ? "" : `, leave ${plan.leftAlone.length} alone`;
  const headline =
    plan.actions.length === 0
      ? `Plan: nothing to heal on ${printable(context.where)}${left}`
      : `Plan: heal ${planSubject(plan, context)}${left}`;
  const lines = [wrap(ink.bold(headline), columns, "  "), ...planRows(plan, context, ink, options)];
  for (const group of groupsOf(plan.actions)) lines.push(...(verbose ? groupDetails : groupLine)(group, ink, columns));
  const allowed = (context.allowed ?? []).filter((id) => plan.actions.some(({ finding }) => finding.class === id));
  if (allowed.length > 0) lines.push(wrap(`Manual, and allowed by --allow: ${allowed.join(", ")}`, columns, "  "));
  if (plan.leftAlone.length > 0) lines.push(...leftAloneLines(plan.leftAlone, ink, options));
  if (context.problems.length > 0) lines.push(renderProblems(context.problems, options));
  return `${lines.join("\n")}\n`;
}

function planRows({ actions }: Plan, { view }: PlanContext, ink: Paint, options: PlanOptions): readonly string[] {
  if (actions.length === 0) return [];
  const findings = actions.map(({ finding }) => reportedFinding(finding, view));
  const words = new Map(actions.map((action) => [action.finding.id, shortAction(action)]));
  const table: FindingsTable = {
    observedAt: view.snapshot.observedAt.toISOString(),
    ink,
    last: { heading: "ACTION", of: ({ id }) => words.get(id) ?? "-" },
    width: options.screenColumns ?? Number.POSITIVE_INFINITY,
    headings: true,
  };
  if (options.wide === true) return renderWide(findings, table);
  const isGrouped = findings.length > MAX_ROWS && !options.verbose;
  return (isGrouped ? renderFindingGroups : renderFindings)(findings, table);
}

/** Actions of one class with the same steps and the same reason. */
function groupsOf(actions: readonly PlannedAction[]): readonly (readonly PlannedAction[])[] {
  const groups = Map.groupBy(actions, (action) =>
    [action.finding.class, action.reason.text, stepsInWords(action)].join("\n"),
  );
  return [...groups.values()];
}

function groupLine([first, ...others]: readonly PlannedAction[], _ink: Paint, columns: number): readonly string[] {
  if (first === undefined) return [];
  const number = others.length === 0 ? "" : ` (${others.length + 1})`;
  const reason = printable(first.reason.text);
  return [
    wrap(`${first.finding.class}${number}: ${stepsInWords(first)}. Reason: ${reason}`, columns, "  "),
    ...aftermaths([first, ...others], columns),
  ];
}

function groupDetails(actions: readonly PlannedAction[], ink: Paint, columns: number): readonly string[] {
  const [first] = actions;
  if (first === undefined) return [];
  const title = classById(first.finding.class)?.title ?? "";
  const lines = ["", wrap(`${ink.bold(first.finding.class)}  ${title} (${actions.length})`, columns, "  ")];
  for (const { finding } of actions) {
    lines.push(wrap(`  ${printable(subjectInWords(finding.subject))}`, columns, "    "));
    lines.push(...evidenceLines(finding.evidence, ink, columns));
  }
  lines.push(wrap(`  Steps: ${stepsInWords(first)}`, columns, "    "));
  lines.push(wrap(`  Reason: ${printable(first.reason.text)}`, columns, "    "));
  return [...lines, ...aftermaths(actions, columns)];
}

function aftermaths(actions: readonly PlannedAction[], columns: number): readonly string[] {
  const texts = new Set(actions.flatMap(({ finding }) => finding.aftermath ?? []));
  return [...texts].map((text) => wrap(`  ${printable(text)}`, columns, "    "));
}

function leftAloneLines(leftAlone: readonly LeftAlone[], ink: Paint, options: PlanOptions): readonly string[] {
  const { columns, verbose } = options;
  const shown = verbose ? leftAlone : leftAlone.slice(0, NAMED_SUBJECTS);
  const lines = shown.map(({ finding, reason }) =>
    wrap(
      `  ${finding.class}  ${printable(subjectInWords(finding.subject))}: ${printable(reason.text)}`,
      columns,
      "    ",
    ),
  );
  const more = leftAlone.length - shown.length;
  return [ink.bold(`Left alone (${leftAlone.length})`), ...lines, ...(more > 0 ? [`  … and ${more} more`] : [])];
}

function stepsInWords(action: PlannedAction): string {
  return stepWords(action).join(", then ");
}

/**
 * Adds to each finding what heal would run for it, because a class's general steps do not show how far the plan goes.
 */
export function withPlan(report: NodeReport, { actions, leftAlone }: Plan): NodeReport {
  const planned = [
    ...actions.map((action) => ({ finding: action.finding, reason: action.reason, steps: [...stepWords(action)] })),
    ...leftAlone.map((left) => ({ ...left, steps: [] })),
  ];
  const plans = new Map(planned.map(({ finding, reason, steps }) => [finding.id, planOf(reason, steps)]));
  const findings = report.findings.map((finding) => {
    const plan = plans.get(finding.id);
    return plan === undefined ? finding : { ...finding, plan };
  });
  return { ...report, findings };
}

function planOf(reason: Reason, steps: string[]): ReportedFinding["plan"] {
  return { steps, reason: reason.text, code: reason.code };
}
