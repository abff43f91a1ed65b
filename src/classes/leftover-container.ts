import type { Detected, Evidence } from "../evidence/finding.ts";
import { isSettled, podPresence } from "../evidence/pod-presence.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { Sandbox } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const leftoverContainer: ClassDefinition = {
  id: "leftover-container",
  code: "S2",
  title: "Running container that no pod owns",
  explanation:
    "A container runs on this node although the API knows no such pod here. It may be a forgotten copy that still writes to a volume, or the only copy of something that matters. unghost shows it and never removes it.",
  mechanism:
    "The pod was deleted by force while the node was away, or the record of a running container was lost over a restart and the kubelet does not know it any more.",
  inSnapshot:
    "A running container, or a task without a CRI container, whose pod uid the API does not have on this node.",
  versions: { since: "every release", until: "open", ends: "No upgrade." },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Report container, pod, age and mounts; an operator decides."],
    gates: [
      "The API, or kubelet's own directories, were read in full.",
      "It has run for longer than an API server's cache may lag behind.",
      "It is no static pod's, unless both were read.",
    ],
  },
  byHand: [
    "crictl inspect <id>: whose is it, what does it write to?",
    "If it is truly orphaned: crictl stop <id>, then crictl rm <id>.",
  ],
  danger:
    "It may be the live copy, and stopping it may lose data. Two copies of one container on one volume lose data too.",
  links: ["containerd/containerd#7247", "kubernetes/kubernetes#134075"],
  detect,
  unread: ({ kubernetes }) =>
    kubernetes.source === "none"
      ? (kubernetes.error ?? "neither an API server nor kubelet's directories were read")
      : undefined,
  countedAs: "leftoverContainers",
};

const POD_UID = "io.kubernetes.pod.uid";
const CONTAINER_NAME = "io.kubernetes.container.name";

/** A running container, from any source. */
interface Running {
  readonly id: string;
  readonly uid: string;
  readonly since: Date;
  readonly seen: Evidence;
  readonly sandbox?: Sandbox;
}

function detect(view: NodeView): readonly Detected[] {
  const { kubernetes } = view.snapshot;
  if (kubernetes.source === "none") return [];
  const wanted = new Set<string>(kubernetes.pods.map(({ uid }) => uid));
  return [...listed(view), ...unlisted(view)]
    .filter(({ uid, since, sandbox }) => {
      if (wanted.has(uid) || !isSettled(since, view)) return false;
      return sandbox === undefined || podPresence(sandbox, view) === "gone";
    })
    .map(({ id, uid, seen, sandbox }) => ({
      severity: "warning",
      steps: [
        `Decide whose it is and what it writes to: crictl inspect ${id.slice(0, 13)}`,
        `Only if it is truly orphaned: crictl stop ${id.slice(0, 13)} && crictl rm ${id.slice(0, 13)}`,
      ],
      subject: { type: "container", name: id, sandboxId: sandbox?.id, pod: sandbox?.pod },
      summary: "a container runs that belongs to no pod Kubernetes knows here",
      evidence: [
        seen,
        { source: "kubernetes", fact: `no pod of this node has the uid ${uid} (asked: ${kubernetes.source})` },
      ],
    }));
}

function listed(view: NodeView): readonly Running[] {
  return (valueOr(view.snapshot.cri, undefined)?.containers ?? []).flatMap(
    ({ id, name, sandboxId, state, ...container }) => {
      const uid = container.labels[POD_UID];
      if (state !== "running" || uid === undefined) return [];
      const { sandbox } = view.about(sandboxId);
      const since = new Date(Number(container.createdAt / 1_000_000n));
      const seen = { source: "cri", fact: `container ${name} is running` };
      return [{ id, uid, since, seen, sandbox }];
    },
  );
}

/**
 * Containers that containerd runs and CRI does not list. A pause container does not count: alone it holds only a
 * network, and it is removed with its sandbox, which has its own class.
 */
function unlisted({ snapshot }: NodeView): readonly Running[] {
  const containerd = valueOr(snapshot.containerd, undefined);
  if (containerd === undefined || snapshot.cri.status !== "read") return [];
  const known = new Set<string>(snapshot.cri.value.containers.map(({ id }) => id));
  const running = new Map(
    containerd.tasks.filter(({ status }) => status === "running").map(({ containerId, pid }) => [containerId, pid]),
  );
  return containerd.records.flatMap(({ id, kind, labels, createdAt }) => {
    const uid = labels[POD_UID];
    const pid = running.get(id);
    if (kind !== "container" || uid === undefined || createdAt === undefined || pid === undefined || known.has(id)) {
      return [];
    }
    const fact = `container ${labels[CONTAINER_NAME] ?? id} is running (pid ${pid}), and CRI does not list it`;
    return [{ id, uid, since: createdAt, seen: { source: "containerd", fact } }];
  });
}
