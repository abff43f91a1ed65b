import type { Selection } from "../diagnose/select.ts";
import { isFailing } from "../evidence/pending.ts";
import { printable } from "../host/text.ts";
import { countByKind } from "./count-by-kind.ts";
import type { NodeReport } from "./node-report.ts";
import { creationWords } from "./pending.ts";
import { count, type Paint, visibleLength, wrap } from "./text.ts";

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
