import { dirname } from "node:path";
import type { Selection } from "../diagnose/select.ts";
import { isFailing } from "../evidence/pending.ts";
import { printable } from "../host/text.ts";
import type { NodeReport } from "./node-report.ts";
import { creationWords, pendingLine } from "./pending.ts";
import {
  count,
  countByKind,
  fullStop,
  inLines,
  type Paint,
  paint,
  sentence,
  type TextOptions,
  visibleLength,
  wrap,
} from "./words.ts";

/** The verdict and its sources. A node that cannot start pods is reported first. */
export function headLines(report: NodeReport, ink: Paint, columns: number): string {
  const verdict = joinedParts(verdictParts(report, ink, columns), columns);
  const creation = report.podCreation === undefined ? undefined : creationWords(report.podCreation);
  if (creation === undefined) return verdict;
  return `${wrap(`${ink.red("NO PODS START")}  ${creation}`, columns, "  ")}\n${verdict}`;
}

/** On a narrower screen the sources are shown only with -v: the lines are needed for findings. */
const ROOM_FOR_SOURCES = 60;

function verdictParts(report: NodeReport, ink: Paint, columns: number): readonly string[] {
  const { total, ready } = report.sandboxes;
  const node = printable(report.node) + selectedWords(report.selection);
  const { name, version, reachable } = report.runtime;
  const sandboxes = total === 0 ? "no sandboxes" : `${count(total, "sandbox", "sandboxes")}, ${ready} ready`;
  const runtime = reachable ? printable(`${name} ${version}`) : "runtime not reached";
  const checked = reachable ? [podsChecked(report)] : [];
  const failures = (report.pending ?? []).filter(isFailing).length;
  const blocked = countBlocked(report);
  const parts = {
    healthy: [`${ink.green("HEALTHY")}  no ghosts on ${node}`, sandboxes],
    degraded: [
      `${ink.yellow("DEGRADED")}  no ghosts on ${node}, but ${count(failures, "failure")} reported`,
      sandboxes,
    ],
    ghosts: [
      `${ink.red("GHOSTS")}  ${countByKind(report.findings)} on ${node}`,
      ...(blocked === 0 ? [] : [`${count(blocked, "pod")} blocked`]),
    ],
    unknown: [`${ink.yellow("UNKNOWN")}  could not determine whether there are ghosts on ${node}`],
  }[report.verdict];
  const sources = columns < ROOM_FOR_SOURCES && reachable ? [] : [runtime, ...checked];
  return [...parts, ...sources];
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

function countBlocked({ findings, podCreation }: NodeReport): number {
  const pods = [...findings.flatMap(({ blockedPods = [] }) => blockedPods), ...(podCreation?.blockedPods ?? [])];
  return new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`)).size;
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
    lines.push(`${ink.green("HEALED")}  ${healed} healed, nothing left on ${where}`);
  } else {
    lines.push(
      `${ink.red("NOT ALL HEALED")}  ${healed} healed, ${count(remaining.length, "finding")} left on ${where}`,
    );
    for (const finding of remaining) {
      const why = actions.find((action) => action.finding === finding)?.reason;
      lines.push(wrap(`  ${printable(finding)}${why === undefined ? "" : `: ${printable(why)}`}`, columns, "    "));
    }
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
