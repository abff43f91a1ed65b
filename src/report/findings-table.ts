import { basename } from "node:path";
import { classById } from "../classes/index.ts";
import type { Evidence } from "../evidence/finding.ts";
import { printable } from "../host/text.ts";
import type { ReportedFinding } from "./node-report.ts";
import { type Cell, type Column, type Layout, layOut } from "./output.ts";
import {
  count,
  findingAge,
  fullStop,
  naturalOrder,
  type Paint,
  sentence,
  subjectInWords,
  withShortIds,
  wrap,
} from "./words.ts";

/** The order and the columns of findings in scan and heal. */
export interface FindingsTable extends Layout {
  readonly observedAt: string;
  readonly ink: Paint;
  /** The last column: what is done about it. */
  readonly last: { readonly heading: string; readonly of: (finding: ReportedFinding) => string };
}

const SEVERITIES = { critical: "crit", warning: "warn", info: "info" } as const;
const COLOURS = { critical: "red", warning: "yellow", info: "dim" } as const;
const RANK = { critical: 0, warning: 1, info: 2 } as const;
const KIND_RANK = { ghost: 0, other: 1, leak: 2 } as const;
const NONE = "-";
/** Like crictl; scan and heal accept them as an id. */
const ID_CHARACTERS = 13;

const SEV: Column = { heading: "SEV", drop: "late" };
const WHAT: Column = { heading: "WHAT", shorten: { keep: "middle", comfortable: 26, least: 12 } };
const CLASS: Column = { heading: "CLASS", shorten: { keep: "start", comfortable: 22, least: 10 } };
const AGE: Column = { heading: "AGE", drop: "early" };
const BLOCKS: Column = { heading: "BLOCKS", drop: "early" };

/** Worst first; causes of all others before them, ghosts before leaks; then by pod, web-2 before web-10. */
export function inTableOrder(findings: readonly ReportedFinding[]): readonly ReportedFinding[] {
  return findings.toSorted(
    (one, other) =>
      RANK[one.severity] - RANK[other.severity] ||
      Number(isCauseOfOthers(other)) - Number(isCauseOfOthers(one)) ||
      KIND_RANK[one.kind ?? "other"] - KIND_RANK[other.kind ?? "other"] ||
      naturalOrder(podOf(one), podOf(other)) ||
      naturalOrder(one.id, other.id),
  );
}

function isCauseOfOthers(finding: ReportedFinding): boolean {
  return classById(finding.class)?.blocksEveryCall === true;
}

/** One line per finding; leaks that differ in nothing but their names share one. */
export function renderFindings(findings: readonly ReportedFinding[], table: FindingsTable): readonly string[] {
  const columns = [SEV, WHAT, CLASS, AGE, BLOCKS, lastColumn(table)];
  const alike = Map.groupBy(inTableOrder(findings), (finding) =>
    finding.kind === "leak" && podOf(finding) === ""
      ? [finding.severity, finding.class, table.last.of(finding)].join("\n")
      : finding.id,
  );
  return layOut(
    columns,
    [...alike.values()].map((group) => cellsOf(group, table)),
    table,
  );
}

/** Everything in one line: complete in a pipe, for `cut` and `awk`; fitted to the screen on a terminal. */
export function renderWide(findings: readonly ReportedFinding[], table: FindingsTable): readonly string[] {
  const more: readonly Column[] = [
    { heading: "SANDBOX" },
    { heading: "SUBJECT", shorten: { keep: "middle", comfortable: 40, least: 16 } },
    { heading: "EVIDENCE", drop: "early" },
  ];
  const rows = inTableOrder(findings).map((finding) => [
    ...cellsOf([finding], table),
    { text: printable(finding.subject.sandboxId?.slice(0, ID_CHARACTERS) ?? NONE) },
    { text: printable(placeOf(finding)) },
    { text: String(finding.evidence.length) },
  ]);
  return layOut([SEV, WHAT, CLASS, AGE, BLOCKS, lastColumn(table), ...more], rows, table);
}

/** The maximum number of groups: a screen has 24 lines. */
const MAX_GROUPS = 16;

/** One line for all findings of one class, severity and treatment, if there are too many. */
export function renderFindingGroups(findings: readonly ReportedFinding[], table: FindingsTable): readonly string[] {
  const groups = Map.groupBy(inTableOrder(findings), (finding) =>
    [finding.severity, finding.class, table.last.of(finding)].join("\n"),
  );
  const shown = [...groups.values()].slice(0, MAX_GROUPS);
  const rows = shown.flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const [sev, , failureClass] = cellsOf([first], table);
    return [
      [
        sev ?? { text: NONE },
        { text: String(group.length) },
        failureClass ?? { text: NONE },
        { text: oldest(group, table.observedAt) },
        { text: blocksOf(group) },
        { text: table.last.of(first) },
        { text: namesOf(group) },
      ],
    ];
  });
  const pods: Column = { heading: "WHAT", shorten: { keep: "start", comfortable: 20, least: 8 }, drop: "early" };
  const columns = [SEV, { heading: "COUNT" }, CLASS, { ...AGE, heading: "OLDEST" }, BLOCKS, lastColumn(table), pods];
  const lines = layOut(columns, rows, table);
  const hidden = [...groups.values()].slice(MAX_GROUPS);
  if (hidden.length === 0) return lines;
  return [...lines, `… and ${count(hidden.flat().length, "finding")} of ${count(hidden.length, "more group")}`];
}

function lastColumn({ last }: FindingsTable): Column {
  return { heading: last.heading, drop: "late" };
}

/** Of findings that differ in nothing but their names. */
function cellsOf(group: readonly ReportedFinding[], { observedAt, ink, last }: FindingsTable): readonly Cell[] {
  const [finding] = group;
  if (finding === undefined) return [];
  const style = (text: string) => ink[COLOURS[finding.severity]](text);
  return [
    { text: SEVERITIES[finding.severity], style },
    { text: namesOf(group) },
    { text: finding.class },
    { text: oldest(group, observedAt) },
    { text: blocksOf(group) },
    { text: last.of(finding) },
  ];
}

/** A sandbox that is being created may be known only from its plugin, which has the pod and not the attempt. */
function podOf({ subject, blockedPods = [] }: ReportedFinding): string {
  const [waiting] = subject.type === "sandbox" && blockedPods.length === 1 ? blockedPods : [];
  const pod = subject.pod ?? waiting;
  return pod === undefined ? "" : printable(`${pod.namespace}/${pod.name}`);
}

function placeOf({ subject }: ReportedFinding): string {
  if (subject.path !== undefined) return subject.path;
  if (subject.pid !== undefined) return `pid ${subject.pid}`;
  return subject.pod === undefined ? (subject.name ?? subject.type) : NONE;
}

function oldest(group: readonly ReportedFinding[], observedAt: string): string {
  const [first] = group.toSorted((one, other) => ((one.since ?? "~") < (other.since ?? "~") ? -1 : 1));
  return first === undefined ? NONE : findingAge(first, observedAt);
}

/** `pod start`, `3 pods`, `pod deletion`, `2 IPs`, or that something else is blocked, which -v shows. */
function blocksOf(group: readonly ReportedFinding[]): string {
  const addresses = group.reduce((sum, { blockedAddresses = 0 }) => sum + blockedAddresses, 0);
  if (addresses > 0) return count(addresses, "IP");
  const pods = new Set(
    group.flatMap(({ blockedPods = [] }) => blockedPods.map(({ namespace, name }) => `${namespace}/${name}`)),
  );
  const [first] = group;
  if (pods.size === 1 && group.length === 1 && first?.subject.type === "sandbox") return "pod start";
  if (pods.size > 0) return count(pods.size, "pod");
  const deleted = group.flatMap(({ terminatingPods = [] }) => terminatingPods).length;
  if (deleted > 0) return deleted === 1 ? "pod deletion" : `${deleted} deletions`;
  if (group.every(({ blocks }) => blocks.length === 0)) return NONE;
  return first?.subject.type === "record" ? "runtime start" : "node";
}

const NAMED = 3;

function namesOf(group: readonly ReportedFinding[]): string {
  const names = [...new Set(group.map(whatOf))];
  return names.slice(0, NAMED).join(", ") + (names.length > NAMED ? `, +${names.length - NAMED}` : "");
}

/** The pod, or the name by which its owner knows it. Ids are as short as in every list. */
function whatOf(finding: ReportedFinding): string {
  const { subject } = finding;
  const { path, pid, name } = subject;
  const pod = podOf(finding);
  if (pod !== "") return pod;
  if (pid !== undefined) return `pid ${pid}`;
  const own = path === undefined ? (name ?? subject.sandboxId ?? subject.type) : basename(path);
  return printable(withShortIds(own));
}

export interface DetailOptions {
  readonly columns: number;
  readonly ink: Paint;
  /** The title of a class. */
  readonly titleOf: (classId: string) => string;
}

/** Everything about each finding: what it blocks, why, the evidence, and what is done about it. By class. */
export function findingDetails(findings: readonly ReportedFinding[], options: DetailOptions): readonly string[] {
  const byClass = Map.groupBy(inTableOrder(findings), (finding) => finding.class);
  return [...byClass].map(([classId, group]) => classDetails(classId, group, options));
}

function classDetails(classId: string, findings: readonly ReportedFinding[], options: DetailOptions): string {
  const { columns, ink, titleOf } = options;
  const lines = [wrap(`${ink.bold(classId)}  ${titleOf(classId)} (${findings.length})`, columns, "  ")];
  const byTreatment = [...Map.groupBy(findings, (finding) => treatmentLines(finding, { columns }).join("\n")).values()];
  const proofs = new Map(findings.map((finding) => [finding, proofLines(finding, ink, columns)]));
  // What all of them share is read once.
  const [first = []] = proofs.values();
  const isShared = (line: string) => [...proofs.values()].every((proof) => proof.includes(line));
  const shared = new Set(findings.length === 1 ? [] : first.filter(isShared));
  if (shared.size > 0) lines.push(`  All ${findings.length}:`, ...shared);
  for (const alike of byTreatment) {
    for (const finding of alike) {
      lines.push(wrap(`  ${printable(subjectInWords(finding.subject))}`, columns, "    "));
      for (const blocked of finding.blocks) lines.push(wrap(`    blocks ${printable(blocked)}`, columns, "      "));
      lines.push(...(proofs.get(finding) ?? []).filter((line) => !shared.has(line)));
    }
    const [example] = alike;
    // One treatment is for all; of several, each belongs to the findings right above it.
    const place = byTreatment.length === 1 ? { columns } : { columns, indent: "    ", number: alike.length };
    if (example !== undefined) lines.push(...treatmentLines(example, place));
  }
  return lines.join("\n");
}

function proofLines({ summary, evidence }: ReportedFinding, ink: Paint, columns: number): readonly string[] {
  return [wrap(`    Why: ${printable(summary)}`, columns, "      "), ...evidenceLines(evidence, ink, columns)];
}

interface TreatmentPlace {
  readonly columns: number;
  readonly indent?: string;
  /** The number of findings right above that it is for, if the class has others as well. */
  readonly number?: number;
}

/** The plan of heal if there is one; else the steps of the class. */
function treatmentLines(
  { treatment, plan, summary }: ReportedFinding,
  { columns, indent = "  ", number = 1 }: TreatmentPlace,
): readonly string[] {
  const these = number === 1 ? "" : ` for these ${number}`;
  const under = `${indent}  `;
  const numbered = (steps: readonly string[]) =>
    steps.map((step, index) => wrap(`${under}${index + 1}. ${printable(sentence(step))}`, columns, `${under}   `));
  if (plan !== undefined && plan.steps.length > 0) {
    const reason = wrap(`${under}Reason: ${printable(fullStop(plan.reason))}`, columns, `${under}  `);
    // A leak is its own reason, which is above.
    return [
      `${indent}unghost heal runs${these}:`,
      ...numbered(plan.steps),
      ...(plan.reason === summary ? [] : [reason]),
    ];
  }
  // The reason for skipping a manual class is its manual steps.
  const isLeft = plan !== undefined && plan.code !== "needs-consent";
  const it = number === 1 ? "it" : `these ${number}`;
  const left = isLeft
    ? [wrap(`${indent}unghost heal leaves ${it} alone: ${printable(plan.reason)}`, columns, under)]
    : [];
  if (treatment.automatic) return isLeft ? left : [`${indent}unghost heal runs${these}:`, ...numbered(treatment.steps)];
  return [...left, `${indent}Manual steps${these}:`, ...numbered(treatment.steps)];
}

export function evidenceLines(evidence: readonly Evidence[], ink: Paint, columns: number): readonly string[] {
  return evidence.map(({ source, fact }) => ink.dim(wrap(`    ${source}: ${printable(fact)}`, columns, "      ")));
}
