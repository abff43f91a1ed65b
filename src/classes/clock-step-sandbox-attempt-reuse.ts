import type { Candidate } from "../evidence/candidates.ts";
import { wasNeverCreated } from "../evidence/ending.ts";
import type { Detected } from "../evidence/finding.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { NodeView } from "../evidence/view.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

/** Before, by creation time. The node's kubelet does not report its version without credentials: it is only printed. */
const ORDERED_BY_ATTEMPT_FROM = "1.35";

export const clockStepSandboxAttemptReuse: ClassDefinition = {
  id: "clock-step-sandbox-attempt-reuse",
  code: "A3",
  title: "Clock step made the kubelet reuse an attempt number",
  explanation:
    "The node's clock was wrong when it booted (no battery, no RTC, a swapped CMOS cell) and was corrected later. The kubelet took an old sandbox for the newest one and asks for an attempt number that is already taken. Typically every pod on the node is hit at once, and the holder of the name is listed with an odd age.",
  mechanism:
    "Kubelets before 1.35 sort a pod's sandboxes by creation time. After a backward step the newest sandbox sorts last, so the next attempt is computed from an older one and collides with a name that exists.",
  signatures: () => [
    {
      text: 'failed to reserve sandbox name "…": name "…" is reserved for "<id>", and <id> is listed',
      pattern: /failed to reserve sandbox name/,
      level: "symptom",
      confidence: 0.15,
      decides:
        "The holder's id is listed over CRI, its creation date is in the future, before 1971 or out of order with its attempt number, and all pods of the node fail together.",
    },
  ],
  logFragments: ["sandbox"],
  inSnapshot:
    "For one pod uid the order of attempts differs from the order of creation times, or a creation time lies in the future, before 1971, or before the first boot.",
  versions: { since: "every kubelet, with any runtime", until: "kubelet 1.34", ends: "Upgrade the kubelet to 1.35." },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "Remove the NotReady sandboxes whose attempt number is in the way, lowest attempt first.",
      "Leave the rest to the kubelet.",
    ],
    gates: [
      "The clock is synchronised now.",
      "The sandbox is dead: NotReady, no container running, no task, no shim.",
      "The sandbox is not Ready under any circumstance.",
    ],
  },
  byHand: [
    "Set the clock right first (chronyc makestep, timedatectl).",
    "crictl pods: find the NotReady sandboxes with impossible dates and remove those with crictl rmp.",
    "Restart the kubelet (k3s, rke2-*). Upgrade to Kubernetes 1.35, and start the kubelet only after time is synchronised.",
  ],
  danger:
    "The sandbox named in the error may be the one that runs: removing a Ready sandbox kills a working pod. Do nothing before the clock is right.",
  links: [
    "kubernetes/kubernetes#127948",
    "kubernetes/kubernetes#90588",
    "kubernetes/kubernetes#93064",
    "kubernetes/kubernetes/pull/130551",
    "containerd/containerd#10842",
    "containerd/containerd#9459",
    "canonical/microk8s#4677",
    "deckhouse/deckhouse/pull/23209",
  ],
  prevention: () =>
    `kubelet: releases before ${ORDERED_BY_ATTEMPT_FROM} order sandboxes by creation time, so a clock step makes them ask for an attempt that is taken. From ${ORDERED_BY_ATTEMPT_FROM} on they go by the attempt.`,
  detect,
  reusesAttempts: true,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  return candidates.flatMap((candidate) => {
    const { sandbox } = candidate;
    if (wasNeverCreated(sandbox)) return [];
    const latest = latestByTime(view.sandboxesOfPod.get(sandbox.pod.uid) ?? []);
    if (latest === undefined || latest.pod.attempt >= sandbox.pod.attempt) return [];
    return [
      sandboxDetected(candidate, {
        severity: "critical",
        summary: `the clock went backwards: attempt ${latest.pod.attempt} of this pod has a later creation time than attempt ${sandbox.pod.attempt}, so kubelet asks for an attempt number that is taken`,
        evidence: [
          {
            source: "cri",
            fact: `attempt ${sandbox.pod.attempt} was created ${inWords(sandbox)}, attempt ${latest.pod.attempt} ${inWords(latest)}`,
          },
        ],
      }),
    ];
  });
}

/** How kubelets before 1.35 choose: by creation time, whatever the attempt number. */
function latestByTime(sandboxes: readonly Sandbox[]): Sandbox | undefined {
  const created = sandboxes.filter((sandbox) => !wasNeverCreated(sandbox));
  return created.toSorted((one, other) => Number(other.createdAt - one.createdAt))[0];
}

function inWords({ createdAt }: Sandbox): string {
  return new Date(Number(createdAt / 1_000_000n)).toISOString();
}
