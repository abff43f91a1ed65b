import { valueOr } from "../../snapshot/source.ts";
import type { FailureClass } from "../failure-class.ts";
import type { Detected } from "../finding.ts";
import { isSettled } from "../settled.ts";
import type { NodeView } from "../view.ts";

export const leftoverContainer: FailureClass = {
  id: "leftover-container",
  code: "S2",
  title: "Running container that no pod owns",
  explanation:
    "A container runs on this node although the API knows no such pod here. It may be a forgotten copy that still writes to a volume, or the only copy of something that matters. unghost shows it and never removes it.",
  mechanism:
    "The pod was deleted by force while the node was away, or the record of a running container was lost over a restart and the kubelet never heard of it again.",
  signatures: [],
  inSnapshot: {
    visible: true,
    how: "A running container, or a task without a CRI container, whose pod uid the API does not have on this node.",
  },
  versions: "All.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Report container, pod, age and mounts; a person decides."],
    gates: ["The API was reachable and its list complete."],
  },
  byHand: [
    "crictl inspect <id>: whose is it, what does it write to?",
    "If it is truly orphaned: crictl stop <id>, then crictl rm <id>.",
  ],
  danger:
    "It may be the live copy, and stopping it may lose data. Two copies of one container on one volume lose data too.",
  links: [
    "https://github.com/containerd/containerd/issues/7247",
    "https://github.com/kubernetes/kubernetes/issues/134075",
  ],
  detect,
};

const POD_UID = "io.kubernetes.pod.uid";

function detect(view: NodeView): readonly Detected[] {
  const { kubernetes, cri } = view.snapshot;
  if (kubernetes.source === "none") return [];
  const wanted = new Set<string>(kubernetes.pods.map(({ uid }) => uid));
  return (valueOr(cri, undefined)?.containers ?? [])
    .filter(({ state, labels, createdAt }) => {
      const uid = labels[POD_UID];
      const since = new Date(Number(createdAt / 1_000_000n));
      return state === "running" && uid !== undefined && !wanted.has(uid) && isSettled(since, view);
    })
    .map((container) => {
      const pod = view.about(container.sandboxId).sandbox?.pod;
      return {
        severity: "warning",
        subject: { type: "container", name: container.id, sandboxId: container.sandboxId, ...(pod ? { pod } : {}) },
        summary: "a container runs that belongs to no pod Kubernetes knows here",
        evidence: [
          { source: "cri", fact: `container ${container.name} is running` },
          {
            source: "kubernetes",
            fact: `no pod of this node has the uid ${container.labels[POD_UID]} (asked: ${kubernetes.source})`,
          },
        ],
        blocks: [],
        cure: [],
      } satisfies Detected;
    });
}
