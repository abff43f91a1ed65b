import { type Candidate, sortSandboxes } from "../classes/candidates.ts";
import type { FailureClass } from "../classes/failure-class.ts";
import { type Detected, type Finding, type Kept, subjectKey } from "../classes/finding.ts";
import { classes } from "../classes/index.ts";
import type { DiagnosisPolicy } from "../classes/policy.ts";
import { type NodeView, viewOf } from "../classes/view.ts";
import type { Snapshot } from "../snapshot/types.ts";
import { adviceFor } from "./advice.ts";

export interface Diagnosis {
  readonly verdict: "healthy" | "ghosts" | "unknown";
  readonly findings: readonly Finding[];
  readonly kept: readonly Kept[];
  readonly advice: readonly string[];
  /** Every sandbox that is proven dead, whether or not anything is wrong with it. */
  readonly dead: readonly Candidate[];
  /** The joined facts that the findings rest on, for whoever plans with them. */
  readonly view: NodeView;
}

/**
 * Groups of classes by the letter of their codes, causes before consequences: what makes removal fail explains a
 * half-made sandbox better than the bare fact that it is half-made, and both explain more than "died in a crash".
 */
const GROUP_ORDER = "BACDOSN";

const inDetectionOrder = classes.toSorted((one, other) => groupOf(one) - groupOf(other));

function groupOf({ code }: FailureClass): number {
  return GROUP_ORDER.indexOf(code.charAt(0));
}

/**
 * Snapshot in, findings out; nothing else is read and nothing is changed. A sandbox that one class has explained is
 * not offered to the next: one cause, one finding.
 */
export function diagnose(snapshot: Snapshot, policy: DiagnosisPolicy): Diagnosis {
  const view = viewOf(snapshot, policy);
  const sorted = sortSandboxes(view);
  const findings: Finding[] = [];
  const leftOut: Kept[] = [];
  let candidates = sorted.candidates;
  for (const failureClass of inDetectionOrder) {
    const detected = failureClass.detect?.(view, candidates) ?? [];
    if (detected.length === 0) continue;
    const explained = new Set(detected.flatMap(({ subject }) => ("sandboxId" in subject ? [subject.sandboxId] : [])));
    const [mine, rest] = partition(candidates, ({ sandbox }) => explained.has(sandbox.id));
    candidates = rest;
    if (isAskedFor(failureClass, policy)) findings.push(...detected.map((one) => toFinding(failureClass, one)));
    else leftOut.push(...mine.map((candidate) => toKept(candidate, `${failureClass.id} was not asked for`)));
  }
  const kept = [...sorted.kept, ...leftOut, ...candidates.map((candidate) => toKept(candidate, NOT_STUCK))];
  return { verdict: verdictOf(snapshot, findings), findings, kept, advice: adviceFor(snapshot, findings), dead: sorted.candidates, view };
}

const NOT_STUCK = "dead, but nothing shows that it is stuck: kubelet removes it when it gets to it";

function isAskedFor({ id }: FailureClass, { only, skip }: DiagnosisPolicy): boolean {
  return (only.length === 0 || only.includes(id)) && !skip.includes(id);
}

function toFinding(failureClass: FailureClass, detected: Detected): Finding {
  const { mode, reversible, steps } = failureClass.treatment;
  return {
    id: `${failureClass.id}/${subjectKey(detected.subject)}`,
    class: failureClass.id,
    ...detected,
    treatment: { automatic: mode === "automatic", reversible, steps },
  };
}

function toKept({ sandbox, retained }: Candidate, otherwise: string): Kept {
  return { sandboxId: sandbox.id, pod: sandbox.pod, reason: retained ?? otherwise };
}

/** "Healthy" is said only when everything that could have shown a ghost was read. */
function verdictOf(snapshot: Snapshot, findings: readonly Finding[]): Diagnosis["verdict"] {
  if (findings.length > 0) return "ghosts";
  const { cni } = snapshot;
  const decisive = [snapshot.boot, snapshot.cri, snapshot.containerd, snapshot.netns, snapshot.processes];
  const files = [cni.results, cni.multus, cni.flannel, cni.hostLocal];
  return [...decisive, ...files].some((source) => source.status === "failed") ? "unknown" : "healthy";
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  const yes: T[] = [];
  const no: T[] = [];
  for (const item of items) (test(item) ? yes : no).push(item);
  return [yes, no];
}
