import type { KeptCode } from "../evidence/finding.ts";
import { isFailing } from "../evidence/pending.ts";
import { printable } from "../host/text.ts";
import {
  type FindingsTable,
  findingDetails,
  renderFindingGroups,
  renderFindings,
  renderWide,
} from "./findings-table.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { shortened } from "./output.ts";
import { pendingLine } from "./pending.ts";
import { headLines, renderProblems } from "./verdict-line.ts";
import { count, inLines, type Paint, paint, type TextOptions, wrap } from "./words.ts";

export interface TableOptions extends TextOptions {
  /** The title of a class. */
  readonly titleOf: (classId: string) => string;
  /** The width for fitting rows; missing without a screen, where nothing is truncated. */
  readonly screenColumns?: number;
  readonly wide?: boolean;
  /** One line for every finding, however many there are. */
  readonly all?: boolean;
  readonly noHeaders?: boolean;
}

/** More findings than this are grouped, because they would fill the screen. */
const MAX_ROWS = 20;
const HEAL = { heading: "HEAL", of: ({ treatment }: ReportedFinding) => (treatment.automatic ? "auto" : "manual") };

/** The verdict, one line per finding, what was skipped or not read, and the next command. */
export function renderTable(report: NodeReport, options: TableOptions): string {
  const { columns, verbose, colour } = options;
  const ink = paint(colour);
  const isGrouped = isTooMany(report.findings, options);
  const body = [
    headLines(report, ink, options.screenColumns ?? Number.POSITIVE_INFINITY),
    ...rows(report, isGrouped, ink, options),
  ];
  if (!verbose) {
    body.push(...pendingLines(report, options));
    if (report.problems.length > 0) body.push(renderProblems(report.problems, options));
    body.push(...notes(report, isGrouped, columns));
    return `${body.join("\n")}\n`;
  }
  const parts = [body.join("\n"), ...findingDetails(report.findings, { ...options, ink })];
  const { pending = [], advice, problems } = report;
  if (pending.length > 0) {
    const lines = pending.map((one) => wrap(`  ${pendingLine(one, report.observedAt)}`, columns, "    "));
    parts.push([ink.bold(`Pending (${pending.length})`), ...lines].join("\n"));
  }
  if (keptOnPurpose(report).length > 0) parts.push(keptDetails(report, ink, columns));
  if (problems.length > 0) parts.push(renderProblems(problems, options));
  if (advice.length > 0) {
    const lines = advice.map((one) => wrap(`  ${printable(one)}`, columns, "    "));
    parts.push([ink.bold("Advice"), ...lines].join("\n"));
  }
  return `${parts.join("\n\n")}\n`;
}

/** One id per line, accepted by scan and heal as a target. */
export function renderNames({ findings }: { readonly findings: readonly { readonly id: string }[] }): string {
  return findings.map(({ id }) => `${printable(id)}\n`).join("");
}

function isTooMany(findings: readonly ReportedFinding[], { all = false, wide = false }: TableOptions): boolean {
  return findings.length > MAX_ROWS && !all && !wide;
}

function rows(report: NodeReport, isGrouped: boolean, ink: Paint, options: TableOptions): readonly string[] {
  if (report.findings.length === 0) return [];
  const table: FindingsTable = {
    observedAt: report.observedAt,
    ink,
    last: HEAL,
    width: options.screenColumns ?? Number.POSITIVE_INFINITY,
    headings: options.noHeaders !== true,
  };
  const render = options.wide === true ? renderWide : isGrouped ? renderFindingGroups : renderFindings;
  return render(report.findings, table);
}

const NAMED_PENDING = { alone: 10, besideFindings: 3 };

/** Without findings, pending entries are shown in detail; else in one line each. */
function pendingLines({ findings, pending = [], observedAt }: NodeReport, options: TableOptions): readonly string[] {
  if (pending.length === 0) return [];
  const failing = pending.filter(isFailing).length;
  const head = `Pending: ${pending.length}${failing > 0 ? `, ${failing} failing` : ""}`;
  const isAlone = findings.length === 0;
  const most = isAlone ? NAMED_PENDING.alone : NAMED_PENDING.besideFindings;
  const first = pending.toSorted((one, other) => Number(isFailing(other)) - Number(isFailing(one))).slice(0, most);
  const lines = first.map((one) => {
    const line = `  ${pendingLine(one, observedAt)}`;
    return isAlone ? wrap(line, options.columns, "    ") : shortened(line, options.columns, "start");
  });
  const more = pending.length - first.length;
  return [head, ...lines, ...(more > 0 ? [`  … and ${more} more (unghost scan -v)`] : [])];
}

/** The kept sandboxes, and the next command. */
function notes(report: NodeReport, isGrouped: boolean, columns: number): readonly string[] {
  const kept = keptLine(report);
  const next: string[] = [];
  if (report.findings.some(({ treatment }) => treatment.automatic)) next.push("Next: unghost heal --dry-run");
  if (isGrouped) next.push("Every finding: unghost scan --all");
  const details = [
    ...(report.findings.length + (report.pending ?? []).length > 0 ? ["Details"] : []),
    ...(report.advice.length > 0 ? [count(report.advice.length, "upgrade note")] : []),
  ];
  if (details.length > 0) next.push(`${details.join(", ")}: unghost scan -v`);
  const parts = [...(kept === undefined ? [] : [kept]), ...next];
  return inLines(parts, columns);
}

function keptDetails(report: NodeReport, ink: Paint, columns: number): string {
  const kept = keptOnPurpose(report);
  const lines = [ink.bold(`Kept on purpose (${kept.length})`)];
  for (const [reason, group] of Map.groupBy(kept, (one) => one.reason)) {
    const names = group.map(({ pod }) => `${pod.namespace}/${pod.name}`).join(", ");
    lines.push(wrap(`  ${printable(names)}: ${printable(reason)}`, columns, "    "));
  }
  return lines.join("\n");
}

const SHORT: Readonly<Record<KeptCode, string>> = {
  "opted-out": "opted out",
  alive: "alive",
  "not-proven-dead": "not proven dead",
  "network-teardown-in-flight": "removal in flight",
  "network-setup-in-flight": "creation in flight",
  "creation-in-flight": "creation in flight",
  "successor-running": "restarted pod",
  "static-pod": "static pod",
  "containers-finished": "finished pod",
  "container-ends-unread": "exit status unread",
  "pod-finished": "finished pod",
  "pod-known": "pod still known",
  "left-to-kubelet": "left to kubelet",
  "not-stuck": "not stuck",
  "class-not-selected": "class not selected",
};

const isCode = (code: string): code is KeptCode => Object.hasOwn(SHORT, code);

/** Sandboxes that are kept on purpose and not listed as pending. */
export function keptOnPurpose({ kept, pending = [] }: NodeReport): NodeReport["kept"] {
  const listed = new Set(pending.map(({ sandboxId }) => sandboxId));
  return kept.filter(({ sandboxId }) => !listed.has(sandboxId));
}

/** `4 kept on purpose (3 finished pod, 1 opted out).` */
export function keptLine(report: NodeReport): string | undefined {
  const kept = keptOnPurpose(report);
  if (kept.length === 0) return undefined;
  const groups = [...Map.groupBy(kept, ({ code }) => (code !== undefined && isCode(code) ? SHORT[code] : "other"))];
  const [first] = groups;
  const reasons =
    groups.length === 1 && first !== undefined
      ? first[0]
      : groups.map(([reason, group]) => `${group.length} ${reason}`).join(", ");
  return `${kept.length} kept on purpose (${reasons}).`;
}
