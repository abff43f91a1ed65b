import type { Candidate } from "../evidence/candidates.ts";
import { wasNeverCreated } from "../evidence/ending.ts";
import type { Detected } from "../evidence/finding.ts";
import { podPresence } from "../evidence/pod-presence.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const podGone: ClassDefinition = {
  id: "pod-gone",
  code: "S3",
  title: "Dead sandbox of a pod that is gone",
  explanation:
    "The cluster has no such pod on this node any more: it was deleted, made again under another uid, or moved. Its dead sandbox is still here, long after kubelet should have removed it, and keeps its name and its record.",
  mechanism:
    "Kubelet removes the sandboxes of a deleted pod within a minute or two. It does not where it was not running when the pod went, or where a removal failed and was not tried again.",
  inSnapshot:
    "NotReady and dead, its pod's uid is not among the pods that the API has for this node, and it has been so for longer than the minimum age.",
  versions: {
    since: "every release of any runtime",
    until: "open",
    ends: "No upgrade: kubelet removes the sandboxes of a pod only while it knows the pod.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: ["Save the logs of containers that would go with it.", "Remove it over CRI, which releases the name."],
    gates: [
      "The sandbox is dead: no container running, no task, no shim or pause process.",
      "The API itself was asked; kubelet's directories are not proof enough for a sandbox that ended in order.",
      "A static pod counts as gone only when kubelet has no directory of it either.",
      "Its last sign of life is older than the minimum age.",
    ],
  },
  byHand: [
    "crictl pods --state NotReady, and compare each uid with kubectl get pod -A -o wide.",
    "crictl stopp <id> && crictl rmp <id> for those whose pod is gone.",
  ],
  danger:
    "A cluster that is asked about the wrong node calls every pod here gone. unghost compares the machine's identity before it trusts one.",
  links: ["kubernetes/kubernetes#134075", "k3s-io/k3s#5189"],
  detect,
  podIsGone: true,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  const { kubernetes, observedAt } = view.snapshot;
  if (kubernetes.source !== "api") return [];
  return candidates.flatMap((candidate) => {
    const { sandbox } = candidate;
    if (candidate.retained !== undefined || podPresence(sandbox, view) !== "gone") return [];
    const quietMs = observedAt.getTime() - lastSignOfLife(candidate);
    if (quietMs < view.policy.minAgeMs) return [];
    const { namespace, name, uid } = sandbox.pod;
    const namesake = kubernetes.pods.find((pod) => pod.namespace === namespace && pod.name === name);
    const fact =
      namesake === undefined
        ? `the API has no pod ${namespace}/${name} on this node`
        : `the pod ${namespace}/${name} was made again: its uid is ${namesake.uid} now, not ${uid}`;
    const quiet = `nothing of it was made or ended for ${durationInWords(Math.floor(quietMs / 1000))}`;
    return [
      sandboxDetected(candidate, {
        summary: "its pod is gone from this node, and the sandbox was not removed",
        evidence: [
          { source: "kubernetes", fact },
          { source: "cri", fact: quiet },
        ],
      }),
    ];
  });
}

/** Milliseconds since 1970. Kubelet itself removes what has just ended. */
function lastSignOfLife({ sandbox, about }: Candidate): number {
  const times = about.containers.flatMap(({ createdAt, exit }) => [createdAt, exit?.finishedAt ?? 0n]);
  const made = wasNeverCreated(sandbox) ? 0n : sandbox.createdAt;
  return Math.max(...[made, ...times].map((time) => Number(time / 1_000_000n)));
}
