import { dirname } from "node:path";
import type { Selection } from "../diagnose/select.ts";
import type { KeptCode } from "../evidence/finding.ts";
import { isFailing } from "../evidence/pending.ts";
import { printable, shellWord } from "../host/text.ts";
import {
  type FindingsTable,
  findingDetails,
  renderFindingGroups,
  renderFindings,
  renderWide,
} from "./findings-table.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { creationHeading, foundState, foundWords, NODE_STATE_HEADINGS, retryWord, retryWords } from "./node-state.ts";
import { shortened } from "./output.ts";
import {
  alikeLine,
  alikePending,
  commonCause,
  countBlocked,
  creationWords,
  graceWords,
  keptOnPurpose,
  pendingLine,
} from "./pending.ts";
import {
  type CommandLine,
  count,
  fullStop,
  inLines,
  type Paint,
  paint,
  sentence,
  type TextOptions,
  visibleLength,
  withoutIds,
  wrap,
} from "./words.ts";

export interface TableOptions extends TextOptions {
  /** The title of a class. */
  readonly titleOf: (classId: string) => string;
  /** The width for fitting rows; missing without a screen, where nothing is truncated. */
  readonly screenColumns?: number;
  readonly wide?: boolean;
  /** One line for every finding, however many there are. */
  readonly all?: boolean;
  readonly noHeaders?: boolean;
  /** Prints a next command as the reader can run it. */
  readonly command?: CommandLine;
}

const PLAIN: CommandLine = (name, ...more) => ["unghost", name, ...more].join(" ");

/** More findings than this are grouped, because they would fill the screen. */
const MAX_ROWS = 20;
const HEAL = { heading: "HEAL", of: healWord };

/** `left`: heal would leave it alone now. */
function healWord({ treatment, failedHeals, plan }: ReportedFinding): string {
  if (failedHeals !== undefined) return retryWord(failedHeals);
  if (isLeft({ plan })) return "left";
  return treatment.automatic ? "auto" : "manual";
}

function isLeft({ plan }: Pick<ReportedFinding, "plan">): boolean {
  return plan !== undefined && plan.steps.length === 0 && plan.code !== "needs-consent";
}

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
    body.push(...failedLines(report, columns));
    body.push(...pendingLines(report, options));
    if (report.problems.length > 0) body.push(renderProblems(report.problems, options));
    body.push(...notKnownLines(report, columns));
    body.push(...notes(report, isGrouped, options));
    return `${body.join("\n")}\n`;
  }
  const parts = [body.join("\n"), ...findingDetails(report.findings, { ...options, ink })];
  const { pending = [], advice, problems } = report;
  if (pending.length > 0) {
    const lines = pending.map((one) => wrap(`  ${pendingLine(one, report.observedAt)}`, columns, "    "));
    const grace = graceWords(pending, options.command ?? PLAIN);
    if (grace !== undefined) lines.push(wrap(`  ${grace}`, columns, "    "));
    parts.push([ink.bold(`Pending (${pending.length})`), ...lines].join("\n"));
  }
  if (keptOnPurpose(report).length > 0) parts.push(keptDetails(report, ink, columns));
  if (problems.length > 0) parts.push(renderProblems(problems, options));
  if (report.notKnown !== undefined) parts.push(notKnownLines(report, columns).join("\n"));
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

function notKnownLines({ notKnown = [] }: NodeReport, columns: number): readonly string[] {
  return notKnown.map((one) => wrap(`Not known: ${printable(one)}`, columns, "  "));
}

const NAMED_PENDING = { alone: 10, besideFindings: 3 };

/** Without findings, pending entries are shown in detail; else in one line each. */
function pendingLines({ findings, pending = [], observedAt }: NodeReport, options: TableOptions): readonly string[] {
  if (pending.length === 0) return [];
  const failing = pending.filter(isFailing).length;
  const head = `Pending: ${pending.length}${failing > 0 ? `, ${failing} failing` : ""}`;
  const isAlone = findings.length === 0;
  const most = isAlone ? NAMED_PENDING.alone : NAMED_PENDING.besideFindings;
  const sorted = pending.toSorted((one, other) => Number(isFailing(other)) - Number(isFailing(one)));
  const groups = alikePending(sorted);
  const first = groups.slice(0, most);
  const lines = first.map((group) => {
    const line = `  ${alikeLine(group, observedAt)}`;
    return isAlone ? wrap(line, options.columns, "    ") : shortened(line, options.columns, "start");
  });
  const more = pending.length - first.flat().length;
  const cause = commonCause(pending);
  const causes = cause === undefined ? [] : [wrap(`  ${cause}`, options.columns, "    ")];
  return [
    head,
    ...causes,
    ...lines,
    ...(more > 0 ? [`  … and ${more} more (${(options.command ?? PLAIN)("scan", "-v")})`] : []),
  ];
}

/** The kept sandboxes, and the next command. */
function notes(report: NodeReport, isGrouped: boolean, { columns, command = PLAIN }: TableOptions): readonly string[] {
  const kept = keptLine(report);
  const next: string[] = [];
  if (report.findings.some((one) => one.treatment.automatic && !isLeft(one)))
    next.push(`Next: ${command("heal", "--dry-run")}`);
  if (isGrouped) next.push(`Every finding: ${command("scan", "--all")}`);
  const details = [
    ...(report.findings.length + (report.pending ?? []).length > 0 ? [detailsWord(report)] : []),
    ...(report.advice.length > 0 ? [count(report.advice.length, "upgrade note")] : []),
  ];
  if (details.length > 0) next.push(`${details.join(", ")}: ${command("scan", "-v")}`);
  const parts = [...(kept === undefined ? [] : [kept]), ...next];
  return inLines(parts, columns);
}

/** Manual steps are behind -v. */
function detailsWord({ findings }: NodeReport): string {
  return findings.some(({ treatment }) => !treatment.automatic) ? "Manual steps, details" : "Details";
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

/** The verdict and its sources. A node that cannot start pods is reported first. */
function headLines(report: NodeReport, ink: Paint, columns: number): string {
  const verdict = joinedParts(verdictParts(report, ink, columns), columns);
  const creation = report.podCreation === undefined ? undefined : creationWords(report.podCreation);
  if (creation === undefined) return verdict;
  const heading = creationHeading(report)?.toUpperCase() ?? "";
  return `${wrap(`${ink.red(heading)}  ${creation}`, columns, "  ")}\n${verdict}`;
}

const VERDICT_COLOURS = { healthy: "green", degraded: "yellow", ghosts: "red", unknown: "yellow" } as const;

/** On a narrower screen the sources are shown only with -v: the lines are needed for findings. */
const ROOM_FOR_SOURCES = 60;

function verdictParts(report: NodeReport, ink: Paint, columns: number): readonly string[] {
  const { total, ready } = report.sandboxes;
  const node = printable(report.node) + selectedWords(report.selection);
  const { name, version, reachable } = report.runtime;
  const sandboxes = total === 0 ? "no sandboxes" : `${count(total, "sandbox", "sandboxes")}, ${ready} ready`;
  const runtime = reachable ? printable(`${name} ${version}`) : "runtime not reached";
  const checked = reachable ? [podsChecked(report)] : [];
  const blocked = countBlocked(report);
  const heading = ink[VERDICT_COLOURS[report.verdict]](NODE_STATE_HEADINGS[foundState(report)].toUpperCase());
  const parts = [
    `${heading}  ${isLimitedToClasses(report) ? `no ghosts of the selected classes on ${node}` : foundWords(report, node)}`,
    ...{
      healthy: [sandboxes],
      degraded: [sandboxes],
      ghosts: blocked === 0 ? [] : [`${count(blocked, "pod")} blocked`],
      unknown: [],
    }[report.verdict],
  ];
  const sources = columns < ROOM_FOR_SOURCES && reachable ? [] : [runtime, ...checked];
  return [...parts, ...sources];
}

/** `--only` and `--skip` left dead sandboxes out. */
function isLimitedToClasses({ verdict, kept }: NodeReport): boolean {
  return verdict === "healthy" && kept.some(({ code }) => code === "class-not-selected");
}

/** Wrapped between two parts if possible. */
function joinedParts([first = "", ...parts]: readonly string[], columns: number): string {
  return parts.reduce(
    (text, part) => {
      const lastLine = text.slice(text.lastIndexOf("\n") + 1);
      const fits = visibleLength(`${lastLine} · ${part}`) <= columns;
      return fits ? `${text} · ${part}` : `${text}\n${wrap(`  ${part}`, columns, "  ")}`;
    },
    wrap(first, columns, "  "),
  );
}

/** ` for shop/web-0`, if the report is limited to it. */
export function selectedWords(selection: Selection | undefined): string {
  if (selection === undefined) return "";
  const { targets, namespaces } = selection;
  const named = [...targets, ...(namespaces.length === 0 ? [] : [`namespace ${namespaces.join(", ")}`])];
  return ` for ${printable(named.join(", "))}`;
}

function podsChecked({ kubernetes }: NodeReport): string {
  switch (kubernetes.source) {
    case "api":
      return "pods checked against the API server";
    case "kubelet":
      return "pods checked against kubelet's directories";
    case "none":
      return "pods not checked against Kubernetes";
  }
}

const MAX_FAILING = 5;

/** The result of a heal in a few lines. */
export function renderSummary(report: NodeReport, options: TextOptions): string {
  const { colour, columns } = options;
  const ink = paint(colour);
  const actions = report.actions ?? [];
  const healed = actions.filter(({ outcome }) => outcome === "healed").length;
  const where = printable(report.node) + selectedWords(report.selection);
  const lines: string[] = [];
  const { remaining = [] } = report;
  if (remaining.length === 0 && report.verdict === "unknown") {
    lines.push(`${ink.yellow("UNKNOWN")}  ${healed} healed, could not determine what is left on ${where}`);
  } else if (remaining.length === 0 && report.verdict === "degraded") {
    const failing = (report.pending ?? []).filter(isFailing);
    lines.push(
      `${ink.yellow("DEGRADED")}  ${healed} healed, ${count(failing.length, "failure")} still reported on ${where}`,
      ...failing.slice(0, MAX_FAILING).map((one) => wrap(`  ${pendingLine(one, report.observedAt)}`, columns, "    ")),
    );
  } else if (remaining.length === 0) {
    const others = actions.filter(({ outcome }) => outcome === "refused" || outcome === "failed").length;
    const gone = others === 0 ? "" : `, ${others} not by this run`;
    lines.push(
      healed === 0 && others > 0
        ? `${ink.green("NOTHING LEFT")}  ${count(others, "finding")} gone on ${where}, none healed by this run`
        : `${ink.green("HEALED")}  ${healed} healed${gone}, nothing left on ${where}`,
    );
  } else {
    lines.push(
      `${ink.red("NOT ALL HEALED")}  ${healed} healed, ${count(remaining.length, "finding")} left on ${where}`,
    );
    lines.push(...causesOf(report, options));
  }
  for (const { expect } of actions)
    if (expect !== undefined) lines.push(wrap(`  ${printable(expect)}`, columns, "    "));
  if (report.problems.length > 0) lines.push(renderProblems(report.problems, options));
  const undoable = actions.flatMap(({ undo = [] }) => undo).length;
  const undo = undoable === 0 ? [] : [`${count(undoable, "file")} can be put back: unghost undo ID`];
  const [logs] = actions.flatMap(({ logsSavedTo = [] }) => logsSavedTo);
  const saved = logs === undefined ? [] : [`Logs: ${printable(dirname(logs))}`];
  lines.push(...inLines(["What was done: unghost history", ...undo, ...saved], columns).map((line) => ink.dim(line)));
  return `${lines.join("\n")}\n`;
}

/** What earlier tries came to, and what follows; once for each cause. */
function failedLines({ findings }: NodeReport, columns: number): readonly string[] {
  const failed = findings.flatMap((finding) =>
    finding.failedHeals === undefined ? [] : [{ finding, ...finding.failedHeals }],
  );
  const byCause = Map.groupBy(failed, (one) => `${retryWords(one)} ${withoutIds(one.reason ?? "")}`);
  return [...byCause.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const reason = first.reason === undefined ? "" : `: ${printable(first.reason)}`;
    const words = `${namesOf(group.map(({ finding }) => nameOf(finding)))} ${retryWords(first)}${reason}`;
    return [shortened(words, columns, "start")];
  });
}

function namesOf(names: readonly string[]): string {
  return names.slice(0, MAX_NAMES).join(", ") + (names.length > MAX_NAMES ? ", …" : "");
}

/** What is left, once for each cause: ids in an error differ from one sandbox to the next. */
function causesOf({ actions = [], findings, remaining = [] }: NodeReport, { columns }: TextOptions): readonly string[] {
  const left = remaining.map((id) => {
    const { reason, outcome } = actions.find(({ finding }) => finding === id) ?? {};
    return { id, found: findings.find((finding) => finding.id === id), reason, outcome };
  });
  const byCause = Map.groupBy(left, ({ reason = "" }) => withoutIds(reason));
  return [...byCause].flatMap(([, [first, ...more]]) => {
    if (first === undefined) return [];
    const named = [first, ...more].map(({ id, found }) => (found === undefined ? id : nameOf(found)));
    const shown = namesOf(named);
    const many = more.length === 0 ? "" : `${named.length} findings: `;
    const { times = 0 } = first.found?.failedHeals ?? {};
    const tries = times > 1 ? ` (failed ${times} times)` : "";
    const reason = first.reason === undefined ? "" : `: ${printable(first.reason)}`;
    const line = wrap(`  ${many}${printable(shown)}${tries}${reason}`, columns, "    ");
    if (first.outcome !== "failed" || first.reason === undefined) return [line];
    // A command to be pasted is not wrapped.
    return [line, `    What it means: unghost explain ${shellWord(printable(first.reason))}`];
  });
}

const MAX_NAMES = 3;

function nameOf({ id, subject }: ReportedFinding): string {
  const pod = "pod" in subject ? subject.pod : undefined;
  return pod === undefined ? id : `${pod.namespace}/${pod.name}`;
}

/** How many are listed; the rest is counted. */
const NAMED = 10;

/** What could not be read, so that findings may be missing. */
export function renderProblems(problems: NodeReport["problems"], { colour, columns, verbose }: TextOptions): string {
  const shown = verbose ? problems : problems.slice(0, NAMED);
  const lines = [paint(colour).bold("Could not read")];
  for (const { source, problem, next } of shown) {
    const advice = next === undefined ? "" : ` ${printable(sentence(next))}`;
    lines.push(wrap(`  ${source}: ${fullStop(printable(problem))}${advice}`, columns, "    "));
  }
  if (problems.length > shown.length) lines.push(`  … and ${problems.length - shown.length} more`);
  return lines.join("\n");
}
