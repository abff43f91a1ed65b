import { keepsStuck } from "../classes/failure-class.ts";
import { classById } from "../classes/index.ts";
import { crashLoopDrivenByGhost } from "../classes/left-behind/crash-loop-driven-by-ghost.ts";
import { deadAfterCrash } from "../classes/left-behind/dead-after-crash.ts";
import { type Evidence, type Finding, podOf } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import { durationInWords } from "../snapshot/duration-words.ts";
import type { KernelFacts } from "../snapshot/types/snapshot.ts";
import { type CrashLoop, crashLoops } from "./crash-loops.ts";
import { toFinding } from "./from-logs.ts";

const MAX_NAMED = 5;

/**
 * Crash loops that another finding explains: one finding for each cause, which points to it. A loop without such a
 * finding is the pod's own problem, and kernel stalls alone may have any cause.
 */
export function viciousCircles(findings: readonly Finding[], view: NodeView): readonly Finding[] {
  const ghosts = findings.filter(isGhost);
  if (ghosts.length === 0) return [];
  let loops = crashLoops(view);
  const circles: Finding[] = [];
  for (const cause of ghosts) {
    const driven = loops.filter((loop) => isCausedBy(loop, cause));
    if (driven.length === 0) continue;
    loops = loops.filter((loop) => !driven.includes(loop));
    circles.push(circleOf(cause, driven, view));
  }
  return circles;
}

function isGhost(finding: Finding): boolean {
  return finding.class === deadAfterCrash.id || blocksSandboxes(finding);
}

/** Whether the class blocks the creation or removal of sandboxes. */
function blocksSandboxes({ class: id }: Finding): boolean {
  const failureClass = classById(id);
  return failureClass !== undefined && keepsStuck(failureClass);
}

/**
 * A sandbox that is re-created repeatedly is caused by a finding about its own pod. Containers that crash have a
 * working sandbox: they are caused by a finding that blocks their pod.
 */
function isCausedBy({ pod, container }: CrashLoop, cause: Finding): boolean {
  const { subject, blockedPods = [] } = cause;
  const isOwn = podOf(subject)?.uid === pod.uid;
  if (container === undefined && isOwn && blocksSandboxes(cause)) return true;
  return blockedPods.some(({ namespace, name }) => namespace === pod.namespace && name === pod.name);
}

function circleOf(cause: Finding, loops: readonly CrashLoop[], view: NodeView): Finding {
  const pods = new Set(loops.map(({ pod }) => `${pod.namespace}/${pod.name}`));
  const restarts = loops.reduce((sum, { restartsSinceBoot }) => sum + restartsSinceBoot, 0);
  const many = pods.size === 1 ? "1 pod restarts" : `${pods.size} pods restart`;
  return toFinding(crashLoopDrivenByGhost, {
    severity: "warning",
    subject: { type: "node", name: cause.id },
    summary: `${many} every ${paceOf(loops)} because of ${cause.id}: ${cause.summary}`,
    evidence: [
      { source: "cri", fact: `${restarts} restarts since boot` },
      ...loops.slice(0, MAX_NAMED).map(evidenceOf),
      ...kernelEvidence(valueOr(view.snapshot.kernel ?? NOT_READ, undefined)),
    ],
    blocks: [...pods].map((name) => `pod ${name}`),
    cure: [],
  });
}

const NOT_READ = { status: "absent", reason: "" } as const;

/** "2-3s" if they differ, else "2s". */
function paceOf(loops: readonly CrashLoop[]): string {
  const all = loops.map(({ everySeconds }) => Math.max(1, Math.round(everySeconds)));
  const fastest = Math.min(...all);
  const slowest = Math.max(...all);
  if (fastest === slowest) return durationInWords(fastest);
  return slowest < 60 ? `${fastest}-${slowest}s` : `${durationInWords(fastest)} to ${durationInWords(slowest)}`;
}

function evidenceOf({ pod, container, everySeconds, lastSecondsAgo, restartsSinceBoot }: CrashLoop): Evidence {
  const what = container === undefined ? "its sandbox" : `container ${container}`;
  const pace = durationInWords(Math.max(1, Math.round(everySeconds)));
  return {
    source: "cri",
    fact: `${pod.namespace}/${pod.name}: ${what} was started again ${restartsSinceBoot} times, every ${pace}, last ${durationInWords(lastSecondsAgo)} ago`,
  };
}

function kernelEvidence(kernel: KernelFacts | undefined): readonly Evidence[] {
  if (kernel === undefined) return [];
  const signs = [
    [kernel.stalls, "stalls of a processor"],
    [kernel.hungTasks, "hung tasks"],
    [kernel.netdeviceWaits, "waits for a network device to go"],
  ] as const;
  const since = kernel.sinceBoot ? "since boot" : "at least, since its log was overwritten";
  return signs
    .filter(([{ count }]) => count > 0)
    .map(([{ count, last }, words]) => ({
      source: "kernel",
      fact: `${count} ${words} ${since}; the last: ${last?.text ?? ""}`,
    }));
}
