import { classById } from "../classes/index.ts";
import { type Reason, reason as reasonFor } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { printable } from "../host/text.ts";
import type { LeftAlone, Plan, PlannedAction } from "../plan/plan.ts";
import { planDigest } from "../plan/saved-plan.ts";
import type { Planned } from "../plan/scan.ts";
import { healingReport, reportedFinding } from "./build.ts";
import {
  evidenceLines,
  type FindingsTable,
  renderFindingGroups,
  renderFindings,
  renderWide,
} from "./findings-table.ts";
import type { NodeReport } from "./node-report.ts";
import { briefSteps, type PlannedStep, plannedSteps, shortAction, stepWords } from "./step-words.ts";
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
  const isOne = plan.actions.length === 1;
  for (const group of groupsOf(plan.actions)) {
    lines.push(...(verbose ? groupDetails(group, ink, columns) : groupLine(group, isOne, columns)));
  }
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
    [action.finding.class, isOwnSummary(action) ? "" : action.reason.text, briefly(action)].join("\n"),
  );
  return [...groups.values()];
}

/** A leak is its own reason, with its own address or path. */
function isOwnSummary({ finding, reason }: PlannedAction): boolean {
  return reason.text === finding.summary;
}

/** Of several leaks, what they have in common. */
function reasonOf(first: PlannedAction, others: readonly PlannedAction[]): string {
  const isAlike = others.every(({ reason }) => reason.text === first.reason.text);
  return isAlike ? first.reason.text : (classById(first.finding.class)?.title ?? first.reason.text);
}

function groupLine(
  [first, ...others]: readonly PlannedAction[],
  withTargets: boolean,
  columns: number,
): readonly string[] {
  if (first === undefined) return [];
  const number = others.length === 0 ? "" : ` (${others.length + 1})`;
  const reason = printable(reasonOf(first, others));
  const steps = withTargets ? wholeSteps(first) : briefly(first);
  return [
    wrap(`${first.finding.class}${number}: ${steps}. Reason: ${reason}`, columns, "  "),
    ...aftermaths([first, ...others], columns),
  ];
}

function groupDetails(actions: readonly PlannedAction[], ink: Paint, columns: number): readonly string[] {
  const [first] = actions;
  if (first === undefined) return [];
  const title = classById(first.finding.class)?.title ?? "";
  const lines = ["", wrap(`${ink.bold(first.finding.class)}  ${title} (${actions.length})`, columns, "  ")];
  for (const action of actions) {
    lines.push(wrap(`  ${printable(subjectInWords(action.finding.subject))}`, columns, "    "));
    lines.push(...evidenceLines(action.finding.evidence, ink, columns));
    lines.push(wrap(`    Steps: ${wholeSteps(action)}`, columns, "      "));
  }
  lines.push(wrap(`  Reason: ${printable(reasonOf(first, actions.slice(1)))}`, columns, "    "));
  return [...lines, ...aftermaths(actions, columns)];
}

function aftermaths(actions: readonly PlannedAction[], columns: number): readonly string[] {
  const texts = new Set(actions.flatMap(({ finding }) => finding.aftermath?.text ?? []));
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

function briefly(action: PlannedAction): string {
  return printable(briefSteps(action).join(", then "));
}

function wholeSteps(action: PlannedAction): string {
  return printable(stepWords(plannedSteps(action)).join(", then "));
}

/**
 * Adds to each finding what heal would run for it, because a class's general steps do not show how far the plan goes.
 */
export function withPlan(report: NodeReport, { actions, leftAlone }: Plan): NodeReport {
  const plans = new Map([
    ...actions.map((action) => [action.finding.id, planOf(action.reason, plannedSteps(action))] as const),
    ...leftAlone.map(({ finding, reason }) => [finding.id, planOf(reason, [])] as const),
  ]);
  const findings = report.findings.map((finding) => {
    const plan = plans.get(finding.id);
    if (plan === undefined) return finding;
    // A class can be undone as far as its own cure goes; the removal of a sandbox cannot.
    const reversible = plan.changes.every(({ undo }) => undo);
    const { treatment } = finding;
    return { ...finding, plan, treatment: plan.changes.length === 0 ? treatment : { ...treatment, reversible } };
  });
  return { ...report, findings };
}

function planOf({ text, code }: Reason, changes: readonly PlannedStep[]) {
  return { steps: stepWords(changes), changes: [...changes], reason: text, code };
}

const DRY_RUN = reasonFor("dry-run", "not done: --dry-run stops at the plan");

/** A plan as a report: nothing of it was executed. */
export function planReport(planned: Pick<Planned, "snapshot" | "diagnosis" | "plan">): NodeReport {
  const { plan } = planned;
  const { text, code } = DRY_RUN;
  const results = plan.actions.map(
    (action) => ({ action, outcome: "skipped", reason: text, code, seconds: 0 }) as const,
  );
  const report = healingReport({ ...planned, results });
  const changes = new Map(plan.actions.map((action) => [action.finding.id, [...plannedSteps(action)]]));
  const actions = report.actions?.map((action) => ({ ...action, changes: changes.get(action.finding) ?? [] }));
  return { ...report, actions, planDigest: planDigest(plan) };
}
