import { type CrashLoop, crashLoops } from "../evidence/crash-loops.ts";
import { type Detected, type Evidence, type Finding, podOf } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import { type ClassDefinition, type Classified, keepsStuck } from "./failure-class.ts";

export const crashLoopDrivenByGhost: ClassDefinition = {
  id: "crash-loop-driven-by-ghost",
  code: "S4",
  title: "Pods that crash over and over because of a ghost",
  explanation:
    "Pods on this node start, miss something that a ghost keeps from running, and end again, every few seconds. That wears the node down, and a node that is worn down makes new ghosts. Nothing is wrong with these pods: heal what they wait for.",
  mechanism:
    "Each start makes namespaces, mounts and processes, and each end tears them down. Hundreds of those an hour load the kernel until it stalls; a stalled kernel makes plugins time out, and plugins that time out leave sandboxes behind.",
  inSnapshot:
    "The runtime shows the third attempt or more of a container or a sandbox, made within the last ten minutes, and another finding names its pod as one that it keeps from working. RCU stalls and hung tasks in the kernel log are reported with it.",
  versions: { since: "every release", until: "open", ends: "No upgrade: it ends with the ghost." },
  treatment: {
    mode: "none",
    reversible: false,
    steps: ["Heal the finding that it points to: the loop ends with its cause."],
    gates: [],
  },
  byHand: [
    "kubectl get pod -A --field-selector spec.nodeName=<node>: which restart, and what do they wait for?",
    "crictl pods --state NotReady: the ghost behind it; heal that one.",
    "dmesg | grep -e 'rcu.*stall' -e 'blocked for more than': has the kernel suffered already?",
  ],
  danger:
    "Deleting the crashing pods changes nothing while the ghost is there, and each new one adds to the load that makes ghosts.",
  links: ["containerd/containerd#12438", "kubernetes/kubernetes#97230"],
  detectAmong,
};

const MAX_NAMED = 5;

/**
 * Crash loops that another finding explains: one finding for each cause, which points to it. A loop without such a
 * finding is the pod's own problem, and kernel stalls alone may have any cause.
 */
function detectAmong(findings: readonly Classified[], view: NodeView): readonly Detected[] {
  const ghosts = findings.filter(({ failureClass }) => failureClass.drivesCrashLoops ?? keepsStuck(failureClass));
  if (ghosts.length === 0) return [];
  let loops = crashLoops(view);
  const circles: Detected[] = [];
  for (const cause of ghosts) {
    const driven = loops.filter((loop) => isCausedBy(loop, cause));
    if (driven.length === 0) continue;
    loops = loops.filter((loop) => !driven.includes(loop));
    circles.push(circleOf(cause.finding, driven, view));
  }
  return circles;
}

/**
 * A sandbox that is re-created repeatedly is caused by a finding about its own pod. Containers that crash have a
 * working sandbox: they are caused by a finding that blocks their pod.
 */
function isCausedBy({ pod, container }: CrashLoop, { failureClass, finding }: Classified): boolean {
  const { subject, blockedPods = [] } = finding;
  const isOwn = podOf(subject)?.uid === pod.uid;
  if (container === undefined && isOwn && keepsStuck(failureClass)) return true;
  return blockedPods.some(({ namespace, name }) => namespace === pod.namespace && name === pod.name);
}

function circleOf(cause: Finding, loops: readonly CrashLoop[], view: NodeView): Detected {
  const pods = new Set(loops.map(({ pod }) => `${pod.namespace}/${pod.name}`));
  const restarts = loops.reduce((sum, { restartsSinceBoot }) => sum + restartsSinceBoot, 0);
  const many = pods.size === 1 ? "1 pod restarts" : `${pods.size} pods restart`;
  return {
    severity: "warning",
    subject: { type: "node", name: cause.id },
    summary: `${many} every ${intervalOf(loops)} because of ${cause.id}: ${cause.summary}`,
    evidence: [
      { source: "cri", fact: `${restarts} restarts since boot` },
      ...loops.slice(0, MAX_NAMED).map(evidenceOf),
      ...kernelEvidence(view.snapshot),
    ],
    blocks: [...pods].map((name) => `pod ${name}`),
  };
}

/** "2-3s" if they differ, else "2s". */
function intervalOf(loops: readonly CrashLoop[]): string {
  const all = loops.map(({ everySeconds }) => Math.max(1, Math.round(everySeconds)));
  const fastest = Math.min(...all);
  const slowest = Math.max(...all);
  if (fastest === slowest) return durationInWords(fastest);
  return slowest < 60 ? `${fastest}-${slowest}s` : `${durationInWords(fastest)} to ${durationInWords(slowest)}`;
}

function evidenceOf({ pod, container, everySeconds, lastSecondsAgo, restartsSinceBoot }: CrashLoop): Evidence {
  const what = container === undefined ? "its sandbox" : `container ${container}`;
  const interval = durationInWords(Math.max(1, Math.round(everySeconds)));
  return {
    source: "cri",
    fact: `${pod.namespace}/${pod.name}: ${what} was started again ${restartsSinceBoot} times, every ${interval}, last ${durationInWords(lastSecondsAgo)} ago`,
  };
}

function kernelEvidence({ kernel }: Snapshot): readonly Evidence[] {
  if (kernel?.status !== "read") return [];
  const { stalls, hungTasks, netdeviceWaits, sinceBoot } = kernel.value;
  const signs = [
    [stalls, "stalls of a processor"],
    [hungTasks, "hung tasks"],
    [netdeviceWaits, "waits for a network device to go"],
  ] as const;
  const since = sinceBoot ? "since boot" : "at least, since its log was overwritten";
  return signs
    .filter(([{ count }]) => count > 0)
    .map(([{ count, last }, words]) => ({
      source: "kernel",
      fact: `${count} ${words} ${since}; the last: ${last ?? ""}`,
    }));
}
