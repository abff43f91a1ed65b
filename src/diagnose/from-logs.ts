import type { Candidate } from "../classes/candidates.ts";
import { networkStillHeld, wasNeverCreated } from "../classes/ending.ts";
import type { FailureClass } from "../classes/failure-class.ts";
import type { Detected, Finding } from "../classes/finding.ts";
import { classById } from "../classes/index.ts";
import { sandboxDetected } from "../classes/sandbox-detected.ts";
import type { NodeView } from "../classes/view.ts";
import { recogniseLevel } from "../explain/recognise.ts";
import { fullIdsIn, type SandboxId } from "../snapshot/ids.ts";
import { printable } from "../snapshot/safe-fs.ts";
import { valueOr } from "../snapshot/source.ts";
import type { LogLine } from "../snapshot/types.ts";

/** What was seen, and the class that it is of. */
export interface Named {
  readonly failureClass: FailureClass;
  readonly detected: Detected;
}

/**
 * What these classes speak of are files and settings: were it still so, the snapshot would show it. A line about it is
 * older than its repair.
 */
const SHOWN_BY_SNAPSHOT: ReadonlySet<string> = new Set([
  "libcni-result-cache-corrupt",
  "multus-cache-corrupt",
  "multus-cache-consumed-rebuilt-config",
  "delegate-scratch-corrupt",
  "cni-not-initialized",
  "chained-plugin-binary-missing",
  "zero-createdat-record",
]);

/** Dead sandboxes that still hold something, and of which the runtime's own errors say why. */
export function namedByLogs(view: NodeView, unexplained: readonly Candidate[]): readonly Named[] {
  const stuck = unexplained.filter(({ sandbox, about }) => networkStillHeld(about) ?? wasNeverCreated(sandbox));
  const lines = newestLinesOf(
    stuck.map(({ sandbox }) => sandbox.id),
    view,
  );
  return stuck.flatMap((candidate) => {
    for (const line of lines.get(candidate.sandbox.id) ?? []) {
      if (TAKEN_DOWN.test(line.text)) return [];
      const failureClass = causeNamedIn(line, candidate.sandbox.id);
      if (failureClass !== undefined) return [{ failureClass, detected: detectedIn(line, candidate, failureClass) }];
    }
    return [];
  });
}

/** containerd's word that DEL has succeeded: what it complained of before is over. */
const TAKEN_DOWN = /teardown network for sandbox \S{1,80} successfully/i;

function causeNamedIn({ text }: LogLine, id: SandboxId): FailureClass | undefined {
  const { level, matches } = recogniseLevel(text);
  const [first] = matches;
  if (level !== "cause" || first === undefined || !id.startsWith(first.sandboxId ?? id)) return undefined;
  const failureClass = classById(first.class);
  const keepsItStuck = failureClass !== undefined && /^[AB]/.test(failureClass.code);
  return keepsItStuck && !SHOWN_BY_SNAPSHOT.has(failureClass.id) ? failureClass : undefined;
}

function detectedIn(line: LogLine, candidate: Candidate, { title }: FailureClass): Detected {
  const held = networkStillHeld(candidate.about) ?? "it was never completely created";
  return sandboxDetected(candidate, {
    severity: "critical",
    summary: `its network cannot be taken down, and the runtime says why: ${title}`,
    evidence: [{ source: "cni", fact: held }, evidenceOf(line)],
  });
}

/** Adds to each finding about a sandbox the newest error that names it, where there is one. */
export function withLogEvidence(findings: readonly Finding[], view: NodeView): readonly Finding[] {
  const ids = findings.flatMap(({ subject }) => ("sandboxId" in subject ? [subject.sandboxId ?? ""] : []));
  const lines = newestLinesOf(ids, view);
  return findings.map((finding) => {
    const { subject, evidence } = finding;
    const isQuoted = evidence.some(({ source }) => source === "logs");
    const own = isQuoted || !("sandboxId" in subject) ? [] : (lines.get(subject.sandboxId ?? "") ?? []);
    const line = own.find(({ text }) => recogniseLevel(text).level !== undefined);
    return line === undefined ? finding : { ...finding, evidence: [...evidence, evidenceOf(line)] };
  });
}

const MAX_QUOTED = 600;

function evidenceOf({ place, text }: LogLine): { readonly source: string; readonly fact: string } {
  const quoted = text.length > MAX_QUOTED ? `${text.slice(0, MAX_QUOTED)}…` : text;
  return { source: "logs", fact: `${place}: ${printable(quoted.trim())}` };
}

/** A flood repeats itself: the last few lines about a sandbox say what there is to say. */
const LINES_EACH = 5;

/** The lines that name one of these sandboxes, newest first. */
function newestLinesOf(ids: readonly string[], view: NodeView): ReadonlyMap<string, readonly LogLine[]> {
  const found = new Map<string, LogLine[]>(ids.map((id) => [id, []]));
  if (found.size === 0) return found;
  for (const line of (valueOr(view.snapshot.logs, undefined)?.lines ?? []).toReversed()) {
    for (const id of fullIdsIn(line.text)) {
      const lines = found.get(id);
      if (lines !== undefined && lines.length < LINES_EACH && lines.at(-1) !== line) lines.push(line);
    }
  }
  return found;
}
