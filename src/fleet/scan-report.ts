import { durationInWords, printable } from "../host/text.ts";
import { type Column, layOut } from "../report/output.ts";
import { count, naturalOrder } from "../report/words.ts";
import type { AgentStanding, Fleet, FleetNode } from "./fleet-nodes.ts";
import type { Printable } from "./output.ts";

const WORST_FIRST = ["ghosts", "degraded", "unknown", "healthy"] as const;

/** Nodes with the worst verdict first, then by name. */
export function worstFirst(nodes: readonly FleetNode[]): readonly FleetNode[] {
  const rank = ({ verdict }: FleetNode) => WORST_FIRST.indexOf(verdict);
  return nodes.toSorted((one, other) => rank(one) - rank(other) || naturalOrder(one.name, other.name));
}

/** As the exit codes of `unghost scan`: 0 healthy, 1 findings or failures, 2 something is unknown. */
export function exitCodeOf({ nodes, missing }: Fleet): 0 | 1 | 2 {
  if (nodes.some(({ verdict }) => verdict === "ghosts" || verdict === "degraded")) return 1;
  return missing.length > 0 || nodes.length === 0 || nodes.some(({ verdict }) => verdict === "unknown") ? 2 : 0;
}

export interface ScanLayout {
  readonly width: number;
  readonly noHeaders: boolean;
  readonly now: Date;
}

export function printableScan(fleet: Fleet, layout: ScanLayout): Printable {
  const nodes = worstFirst(fleet.nodes);
  return {
    document: scanDocument(fleet, nodes),
    names: nodes.map(({ name }) => `node/${name}`),
    table: (isWide) => scanTable(nodes, isWide, layout),
  };
}

/** The JSON contract of `unghost fleet scan`. Each item carries the status of the node's GhostReport. */
function scanDocument(fleet: Fleet, nodes: readonly FleetNode[]) {
  return {
    apiVersion: "unghost.dev/v1",
    kind: "FleetReport",
    totals: totalsOf(nodes),
    items: nodes.map(({ name, verdict, nodeStatus, agent, oneShot, report }) => ({
      node: name,
      verdict,
      nodeStatus,
      agent,
      oneShot: oneShot === "scanned" ? { code: "scanned" } : oneShot,
      report,
    })),
    missing: fleet.missing,
    problems: fleet.problems,
  };
}

function totalsOf(nodes: readonly FleetNode[]) {
  const having = (verdict: FleetNode["verdict"]) => nodes.filter((node) => node.verdict === verdict).length;
  return {
    nodes: nodes.length,
    ghosts: having("ghosts"),
    degraded: having("degraded"),
    unknown: having("unknown"),
    healthy: having("healthy"),
    findings: nodes.reduce((sum, { report }) => sum + (report?.totals.findings ?? 0), 0),
    blockedPods: nodes.reduce((sum, { report }) => sum + (report?.totals.blockedPods ?? 0), 0),
  };
}

/** `2 of 5 nodes have ghosts, 1 is unknown; 3 pods are blocked`. */
export function scanSummary({ nodes }: Fleet): string {
  const totals = totalsOf(nodes);
  if (totals.nodes === 0) return "no nodes";
  const parts = [
    `${totals.ghosts} of ${count(totals.nodes, "node")} with ghosts`,
    ...(totals.degraded > 0 ? [`${totals.degraded} degraded`] : []),
    ...(totals.unknown > 0 ? [`${totals.unknown} unknown`] : []),
    ...(totals.blockedPods > 0 ? [`${count(totals.blockedPods, "pod")} blocked`] : []),
  ];
  return parts.join(", ");
}

/** Nodes in words, the first ones by name. */
export function nodeList(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMED).join(", ");
  return names.length > MOST_NAMED ? `${shown} and ${names.length - MOST_NAMED} more` : shown;
}

const MOST_NAMED = 5;

const COLUMNS: readonly Column[] = [
  { heading: "NODE", shorten: { keep: "middle", comfortable: 40, least: 16 } },
  { heading: "VERDICT" },
  { heading: "FINDINGS", shorten: { keep: "start", comfortable: 60, least: 20 } },
  { heading: "BLOCKED", drop: "late" },
  { heading: "PODS START" },
  { heading: "STATUS", drop: "late" },
  { heading: "AGENT", drop: "late" },
];
const WIDE: readonly Column[] = [{ heading: "VERSION" }, { heading: "WRITTEN" }, { heading: "BLOCKED PODS" }];

function scanTable(nodes: readonly FleetNode[], isWide: boolean, layout: ScanLayout): readonly string[] {
  const rows = nodes.map((node) => [...cellsOf(node, layout.now), ...(isWide ? wideCells(node, layout.now) : [])]);
  const columns = isWide ? [...COLUMNS, ...WIDE] : COLUMNS;
  const cells = rows.map((row) => row.map((text) => ({ text: printable(text) })));
  const width = isWide ? Number.POSITIVE_INFINITY : layout.width;
  return layOut(columns, cells, { width, headings: !layout.noHeaders });
}

const AGENT_WORDS: Readonly<Record<AgentStanding, string>> = {
  ready: "ready",
  "not-ready": "not ready",
  none: "none",
  "no-pod": "on the node",
  unreadable: "other version",
};

function cellsOf({ name, verdict, nodeStatus, agent, oneShot, report }: FleetNode, now: Date): readonly string[] {
  const isScanned = oneShot === "scanned";
  const stale = !isScanned && report !== undefined && (agent === "not-ready" || agent === "none") ? " (stale)" : "";
  return [
    name,
    `${verdict}${stale}`,
    findingsWords(report),
    report === undefined ? "-" : String(report.totals.blockedPods),
    creationWords(report, now),
    nodeStatus,
    `${AGENT_WORDS[agent]}${isScanned ? " (one-shot pod)" : ""}`,
  ];
}

function findingsWords(report: FleetNode["report"]): string {
  if (report === undefined) return "-";
  const { classes = [], totals } = report;
  if (totals.findings === 0) return "0";
  return classes.map(({ class: id, count: number }) => `${number} ${id}`).join(", ") || String(totals.findings);
}

function creationWords(report: FleetNode["report"], now: Date): string {
  const { able, since } = report?.podCreation ?? {};
  if (able === "no" && since !== undefined) return `no, for ${ageWords(since, now)}`;
  return able ?? "-";
}

function wideCells({ report }: FleetNode, now: Date): readonly string[] {
  if (report === undefined) return ["-", "-", "-"];
  const { agentVersion, observedAt, blockedPods = [], totals } = report;
  const more = totals.blockedPods - blockedPods.length;
  const pods = [...blockedPods, ...(more > 0 ? [`${more} more`] : [])].join(", ");
  return [agentVersion || "-", `${ageWords(observedAt, now)} ago`, pods || "-"];
}

function ageWords(since: string, now: Date): string {
  const seconds = (now.getTime() - Date.parse(since)) / 1000;
  return Number.isFinite(seconds) ? durationInWords(seconds) : "?";
}
