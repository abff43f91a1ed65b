import { type FailureClass, keepsStuck } from "../classes/failure-class.ts";
import { classById, classThatAdopts } from "../classes/index.ts";
import type { Candidate } from "../evidence/candidates.ts";
import { networkStillHeld, wasNeverCreated } from "../evidence/ending.ts";
import { type Detected, type Finding, podOf, subjectKey } from "../evidence/finding.ts";
import { isFresh, runtimeReports } from "../evidence/reports.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { NodeView } from "../evidence/view.ts";
import { printable, truncate } from "../host/text.ts";
import { innermostCause } from "../logs/answer.ts";
import type { FailedOperation, RuntimeReport } from "../logs/reports.ts";
import { lineTime } from "../logs/time.ts";
import type { LogLine, PodEvent } from "../node/types/snapshot.ts";
import { recogniseLevel } from "./explain/recognise.ts";

/** What was detected, and its class. */
export interface Named {
  readonly failureClass: FailureClass;
  readonly detected: Detected;
}

/** Dead sandboxes that still hold something, and whose cause is named by an error of the runtime. */
export function namedByLogs(view: NodeView, unexplained: readonly Candidate[]): readonly Named[] {
  const stuck = unexplained.filter(({ sandbox, about }) => networkStillHeld(about, view) ?? wasNeverCreated(sandbox));
  const reports = newestReportsOf(
    stuck.map(({ sandbox }) => sandbox.id),
    view,
  );
  return stuck.flatMap((candidate) => {
    // Errors before a successful release are obsolete.
    const failures = untilReleased(reports.get(candidate.sandbox.id) ?? []);
    for (const report of failures) {
      const failureClass = causeNamedIn(report, view);
      if (failureClass !== undefined) return [{ failureClass, detected: detectedIn(report, candidate, view) }];
    }
    const [newest] = failures;
    if (newest === undefined || !isUnknownFailure(newest, view)) return [];
    return [{ failureClass: classThatAdopts("unknown-causes"), detected: detectedIn(newest, candidate, view) }];
  });
}

function untilReleased(reports: readonly RuntimeReport[]): readonly FailedOperation[] {
  const failures: FailedOperation[] = [];
  for (const report of reports) {
    if (report.kind !== "failed") return failures;
    failures.push(report);
  }
  return failures;
}

function causeNamedIn(report: FailedOperation, view: NodeView): FailureClass | undefined {
  const { level, matches } = recogniseLevel(textOf(report));
  if (level !== "cause") return undefined;
  const failureClass = matches.map((match) => classById(match.class)).find((one) => one && mayBeHere(one, view));
  if (failureClass === undefined || !keepsStuck(failureClass)) return undefined;
  if (failureClass.isOver?.(report.error, view) === true) return undefined;
  const { inSnapshot } = failureClass;
  return "how" in inSnapshot && inSnapshot.conclusive === true ? undefined : failureClass;
}

function mayBeHere({ needsMultus }: FailureClass, { snapshot: { cni } }: NodeView): boolean {
  if (needsMultus !== true || cni.conf.status !== "read" || cni.multus.status === "failed") return true;
  const hasCache = cni.multus.status === "read" && cni.multus.value.files.length > 0;
  return cni.conf.value.multus !== undefined || hasCache;
}

/** A removal that fails now, with an error that no class has: an old one may have been repaired since. */
function isUnknownFailure(report: FailedOperation, view: NodeView): boolean {
  const { operation, line } = report;
  if (operation === "create-sandbox" || !isFresh({ at: lineTime(line.text, view.snapshot.observedAt) }, view))
    return false;
  const { matches } = recogniseLevel(textOf(report));
  return matches.every((match) => {
    const failureClass = classById(match.class);
    return failureClass !== undefined && !mayBeHere(failureClass, view);
  });
}

/** The catalogue's signatures need the operation for context. */
const CALLS = { "create-sandbox": "run", "stop-sandbox": "stop", "remove-sandbox": "remove" } as const;

function textOf({ operation, sandboxId, error }: FailedOperation): string {
  return `${CALLS[operation]} pod sandbox ${sandboxId ?? ""} failed: ${error}`;
}

function detectedIn({ line, error }: FailedOperation, candidate: Candidate, view: NodeView): Detected {
  const answer = innermostCause(error) ?? error;
  const held = networkStillHeld(candidate.about, view) ?? "it was never completely created";
  return sandboxDetected(candidate, {
    severity: "critical",
    summary: `its network cannot be torn down; the answer is «${printable(answer)}»`,
    evidence: [{ source: "cni", fact: held }, evidenceOf(line)],
  });
}

/** Adds to each finding about a sandbox the runtime's newest report about it, if any. */
export function withLogEvidence(findings: readonly Finding[], view: NodeView): readonly Finding[] {
  const ids = findings.flatMap(({ subject }) => ("sandboxId" in subject ? [subject.sandboxId ?? ""] : []));
  const reports = newestReportsOf(ids, view);
  return findings.map((finding) => {
    const { subject, evidence } = finding;
    const isQuoted = evidence.some(({ source }) => source === "logs");
    const own = isQuoted || !("sandboxId" in subject) ? [] : (reports.get(subject.sandboxId ?? "") ?? []);
    const report = own.find((one) => one.kind === "failed");
    return report === undefined ? finding : { ...finding, evidence: [...evidence, evidenceOf(report.line)] };
  });
}

const MAX_QUOTED_CHARACTERS = 600;

function evidenceOf({ place, text }: LogLine): { readonly source: string; readonly fact: string } {
  return { source: "logs", fact: `${place}: ${printable(truncate(text, MAX_QUOTED_CHARACTERS).trim())}` };
}

/** A flood repeats itself: the last few reports about a sandbox are enough. */
const REPORTS_EACH = 5;

/** The reports of runtime and kubelet about these sandboxes, newest first. */
function newestReportsOf(ids: readonly string[], view: NodeView): ReadonlyMap<string, readonly RuntimeReport[]> {
  const found = new Map<string, RuntimeReport[]>(ids.map((id) => [id, []]));
  if (found.size === 0) return found;
  for (const report of runtimeReports(view.snapshot).toReversed()) {
    const own = "sandboxId" in report ? found.get(report.sandboxId ?? "") : undefined;
    if (own !== undefined && own.length < REPORTS_EACH) own.push(report);
  }
  return found;
}

const MAX_QUOTED_EVENTS = 2;

/** Adds the cluster's events to each finding about a pod. Only as evidence, because an event may be an hour old. */
export function withEventEvidence(findings: readonly Finding[], { snapshot }: NodeView): readonly Finding[] {
  const events = snapshot.kubernetes.source === "api" ? (snapshot.kubernetes.events ?? []) : [];
  if (events.length === 0) return findings;
  return findings.map((finding) => {
    const pod = podOf(finding.subject);
    const own = events.filter((event) => event.pod === pod?.name && event.namespace === pod.namespace);
    if (own.length === 0) return finding;
    return { ...finding, evidence: [...finding.evidence, ...own.slice(0, MAX_QUOTED_EVENTS).map(eventEvidence)] };
  });
}

export function eventEvidence({ reason, message, count }: PodEvent): Finding["evidence"][number] {
  const times = count > 1 ? `, ${count} times` : "";
  return { source: "kubernetes", fact: `event ${reason}${times}: ${printable(message)}` };
}

/** Adds the name and the treatment of the class. */
export function toFinding(
  { id, treatment }: Pick<FailureClass, "id" | "treatment">,
  { explains: _explained, attended, steps: own, ...detected }: Detected,
): Finding {
  const { mode, reversible, steps } = treatment;
  return {
    id: `${id}/${subjectKey(detected.subject)}`,
    class: id,
    blocks: [],
    cure: [],
    ...detected,
    treatment: {
      automatic: mode === "automatic" && attended === undefined,
      reversible,
      steps: attended ?? own ?? steps,
    },
  };
}
