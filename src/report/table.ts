import { isFailing } from "../classes/pending.ts";
import { evidenceLines, evidenceOfFirst } from "./evidence.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { creationWords, pendingLine } from "./pending.ts";
import { renderProblems } from "./problems.ts";
import { count, type Paint, paint, printable, sentence, type TextOptions, wrap } from "./text.ts";

export interface TableOptions extends TextOptions {
  /** What a class is called by people. */
  readonly titleOf: (classId: string) => string;
}

/** How many subjects of one class are named before the rest is counted. */
const NAMED_SUBJECTS = 10;

/** What a tired operator wants: one line of verdict, then what is blocked, then why. */
export function renderTable(report: NodeReport, options: TableOptions): string {
  const ink = paint(options.colour);
  const parts = [headLines(report, ink, options.columns)];
  const byClass = Map.groupBy(report.findings, (finding) => finding.class);
  for (const [classId, findings] of byClass) parts.push(renderClass(classId, findings, ink, options));
  if ((report.pending ?? []).length > 0) parts.push(renderPending(report, ink, options));
  if (leftAlone(report).length > 0) parts.push(renderKept(report, ink, options));
  if (report.problems.length > 0) parts.push(renderProblems(report.problems, options));
  if (report.advice.length > 0) {
    const lines = report.advice.map((advice) => wrap(`  ${printable(advice)}`, options.columns, "    "));
    parts.push([ink.bold("Advice"), ...lines].join("\n"));
  }
  return `${parts.join("\n\n")}\n`;
}

/** That no pod can start is what people must read first. */
function headLines(report: NodeReport, ink: Paint, columns: number): string {
  const verdict = verdictLine(report, ink, columns);
  const creation = report.podCreation === undefined ? undefined : creationWords(report.podCreation);
  if (creation === undefined) return verdict;
  return `${wrap(`${ink.red("NO PODS START")}  ${creation}`, columns, "  ")}\n${verdict}`;
}

function verdictLine(report: NodeReport, ink: Paint, columns: number): string {
  const { total, ready, notReady } = report.sandboxes;
  const node = printable(report.node);
  const { name, version, reachable } = report.runtime;
  const runtime = reachable ? printable(`${name} ${version}`) : "runtime not reached";
  const sandboxes = `${count(total, "sandbox", "sandboxes")}: ${ready} ready, ${notReady} not ready`;
  const line = {
    healthy: `${ink.green("HEALTHY")}  no ghosts on ${node} (${runtime}; ${sandboxes})`,
    degraded: `${ink.yellow("DEGRADED")}  no ghosts, but ${count((report.pending ?? []).filter(isFailing).length, "failure")} reported on ${node} (${runtime}; ${sandboxes})`,
    ghosts: `${ink.red("GHOSTS")}  ${count(report.findings.length, "finding")} on ${node} (${runtime}; ${sandboxes})`,
    unknown: `${ink.yellow("UNKNOWN")}  cannot tell whether ${node} has ghosts (${runtime})`,
  }[report.verdict];
  return wrap(line, columns, "  ");
}

function renderClass(
  classId: string,
  findings: readonly ReportedFinding[],
  ink: Paint,
  { columns, verbose, titleOf }: TableOptions,
): string {
  const [first] = findings;
  if (first === undefined) return "";
  const lines = [wrap(`${ink.bold(classId)}  ${titleOf(classId)} (${findings.length})`, columns, "  ")];
  const named = verbose ? findings : findings.slice(0, NAMED_SUBJECTS);
  for (const finding of named) {
    lines.push(wrap(`  ${printable(subjectInWords(finding))}`, columns, "    "));
    for (const blocked of finding.blocks) lines.push(wrap(`    blocks ${printable(blocked)}`, columns, "      "));
    if (verbose) lines.push(...evidenceLines(finding.evidence, ink, columns));
  }
  if (findings.length > named.length)
    lines.push(ink.dim(`  … and ${findings.length - named.length} more (-v names them)`));
  lines.push(wrap(`  Why: ${printable(first.summary)}`, columns, "    "));
  if (!verbose) lines.push(...evidenceOfFirst(findings, ink, columns));
  const how = first.treatment.automatic ? "unghost would" : "A person has to";
  const steps = first.treatment.steps.map((step, index) => `${index + 1}. ${printable(sentence(step))}`);
  lines.push(`  ${how}:`, ...steps.map((step) => wrap(`    ${step}`, columns, "       ")));
  return lines.join("\n");
}

function subjectInWords({ subject }: ReportedFinding): string {
  const pod = subject.pod ? `${subject.pod.namespace}/${subject.pod.name} (attempt ${subject.pod.attempt})` : undefined;
  const id = subject.sandboxId?.slice(0, 13);
  const rest = [subject.path, subject.pid === undefined ? undefined : `pid ${subject.pid}`];
  const words = [pod, id, ...rest].filter((word) => word !== undefined);
  return words.length > 0 ? words.join("  ") : (subject.name ?? subject.type);
}

const NAMED_PENDING = 10;

function renderPending(
  { pending = [], observedAt }: NodeReport,
  ink: Paint,
  { columns, verbose }: TableOptions,
): string {
  const lines = [ink.bold(`Pending (${pending.length})`)];
  const shown = verbose ? pending : pending.slice(0, NAMED_PENDING);
  for (const one of shown) lines.push(wrap(`  ${pendingLine(one, observedAt)}`, columns, "    "));
  if (pending.length > shown.length) {
    lines.push(ink.dim(`  … and ${pending.length - shown.length} more (-v names them)`));
  }
  return lines.join("\n");
}

/** Without those that are pending: they are said once. */
function leftAlone({ kept, pending = [] }: NodeReport): NodeReport["kept"] {
  const said = new Set(pending.map(({ sandboxId }) => sandboxId));
  return kept.filter(({ sandboxId }) => !said.has(sandboxId));
}

function renderKept(report: NodeReport, ink: Paint, { columns, verbose }: TableOptions): string {
  const kept = leftAlone(report);
  const lines = [ink.bold(`Left alone (${kept.length})`)];
  const byReason = Map.groupBy(kept, ({ reason }) => reason);
  for (const [reason, group] of byReason) {
    const names = group.map(({ pod }) => `${pod.namespace}/${pod.name}`);
    const shown = verbose ? names : names.slice(0, 3);
    const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
    lines.push(wrap(`  ${printable(shown.join(", "))}${more}: ${printable(reason)}`, columns, "    "));
  }
  return lines.join("\n");
}
