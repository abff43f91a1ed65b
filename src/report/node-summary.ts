import { isCreation, isFailing } from "../evidence/pending.ts";
import { printable, truncate } from "../host/text.ts";
import type { NodeReport, ReportedFinding } from "./node-report.ts";
import { podWords } from "./pending.ts";

const MOST_FINDINGS = 10;
const MOST_CLASSES = 20;
const MOST_PODS = 20;
const LONGEST_TEXT = 240;

/** What is known about a node, in a few kilobytes. */
export function summaryOf(report: NodeReport, findings: readonly ReportedFinding[]) {
  const worst = findings.toSorted(bySeverity);
  const classes = [...Map.groupBy(findings, (finding) => finding.class)]
    .map(([id, { length }]) => ({ class: id, count: length }))
    .toSorted((one, other) => other.count - one.count || (one.class < other.class ? -1 : 1));
  const blockedPods = blockedIn(report, findings);
  return {
    verdict: report.verdict,
    worstClass: worst[0]?.class,
    observedAt: apiTime(new Date(report.observedAt)),
    sandboxes: report.sandboxes,
    podCreation: creationOf(report),
    totals: { findings: findings.length, blockedPods: blockedPods.length },
    classes: unlessEmpty(classes.slice(0, MOST_CLASSES)),
    worst: worst.slice(0, MOST_FINDINGS),
    blockedPods: unlessEmpty(blockedPods.slice(0, MOST_PODS)),
    truncated: worst.length > MOST_FINDINGS || blockedPods.length > MOST_PODS || classes.length > MOST_CLASSES,
  };
}

function blockedIn({ pending = [], podCreation }: NodeReport, findings: readonly ReportedFinding[]): readonly string[] {
  const waiting = [
    ...findings.flatMap(({ blockedPods = [] }) => blockedPods),
    ...(podCreation?.blockedPods ?? []),
    ...pending.filter(isFailing).flatMap(({ pod }) => pod ?? []),
  ];
  return [...new Set(waiting.map((pod) => printable(podWords(pod))))].toSorted();
}

export function findingSummary(finding: ReportedFinding) {
  const { pod, sandboxId } = finding.subject;
  return {
    class: finding.class,
    severity: finding.severity,
    summary: summaryLine(finding.summary),
    pod: pod && printable(podWords(pod)),
    sandboxId,
    since: finding.since === undefined ? undefined : apiTime(new Date(finding.since)),
    blocks: new Set((finding.blockedPods ?? []).map(podWords)).size,
  };
}

function creationOf({ podCreation, pending = [] }: NodeReport) {
  if (podCreation === undefined) return undefined;
  const { able, lastSuccess, lastFailure } = podCreation;
  const [since] = pending
    .filter((one) => isCreation(one) && isFailing(one))
    .map((one) => one.since)
    .toSorted();
  return {
    able,
    since: able === "no" && since !== undefined ? apiTime(new Date(since)) : undefined,
    lastSuccessAt: lastSuccess && apiTime(new Date(lastSuccess.at)),
    lastFailureAt: lastFailure?.at === undefined ? undefined : apiTime(new Date(lastFailure.at)),
    code: lastFailure?.code,
    message: lastFailure && summaryLine(lastFailure.message),
  };
}

const SEVERITIES = ["critical", "warning", "info"];

/** One that blocks something is worse than one that does not. */
export function severityRank({ severity, blocks }: ReportedFinding): number {
  return SEVERITIES.indexOf(severity) + (blocks.length === 0 ? SEVERITIES.length : 0);
}

/** The worst first; among equals by id, because the runtime's list has no stable order. */
export function bySeverity(one: ReportedFinding, other: ReportedFinding): number {
  return severityRank(one) - severityRank(other) || (one.id < other.id ? -1 : 1);
}

/** The time format of the Kubernetes API: whole seconds. */
export function apiTime(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}

/** To the length of a line. */
export function summaryLine(text: string): string {
  return truncate(printable(text), LONGEST_TEXT);
}

function unlessEmpty<Item>(items: Item[]): Item[] | undefined {
  return items.length === 0 ? undefined : items;
}
