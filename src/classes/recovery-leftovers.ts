import { hasIgnoreMark } from "../evidence/candidates.ts";
import type { Detected } from "../evidence/finding.ts";
import { livenessOf, livenessOfStored, nodeSigns } from "../evidence/liveness.ts";
import { livenessInWords } from "../evidence/liveness-words.ts";
import { isKubeletAlive } from "../evidence/pod-presence.ts";
import { createdInWords, metadataEvidence, storedSandboxes } from "../evidence/stored-records.ts";
import type { NodeView } from "../evidence/view.ts";
import { read } from "../host/source.ts";
import { isFullId } from "../node/types/ids.ts";
import type { MetadataFile, OfflineFacts } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const kubeletBlockedByOrphanContainer: ClassDefinition = {
  id: "kubelet-blocked-by-orphan-container",
  code: "D6",
  title: "A container without its sandbox",
  explanation:
    "The runtime lists a container whose pod sandbox it does not list. Older kubelets, and the k3s built on them, end with this error at every start, so the whole node stays down, also after a reboot. Newer kubelets log it and go on, but the container stays.",
  mechanism:
    "When it starts, the kubelet maps every container of the runtime to its sandbox. A sandbox whose record could not be loaded, or was removed without its containers, leaves one without. Kubelet 1.19 to 1.21 return an error for it and end.",
  signatures: () => [
    {
      text: "Failed to start ContainerManager: failed to build map of initial containers from runtime: no PodsandBox found with Id '<id>'",
      pattern: /failed to build map of initial containers from runtime|no podsandbox found with id/,
      confidence: 0.97,
    },
    {
      text: 'No PodSandBox found for the container podSandboxId="<id>" containerName="<name>" containerId="<id>"',
      pattern: /no podsandbox found for the container/,
      confidence: 0.85,
    },
  ],
  logFragments: ["podsandbox found", "map of initial containers"],
  inSnapshot:
    "The runtime lists a container that belongs to no listed sandbox. `unghost scan --offline` finds its record before the runtime and the kubelet start.",
  versions: {
    since: "kubelet 1.19",
    until: "kubelet 1.21, and k3s of these releases",
    ends: "Upgrade the kubelet to 1.22: it logs the container and goes on, and the container stays.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: ["Save the container's log.", "Remove the container over CRI; a kubelet that ends in a loop then starts."],
    gates: [
      "The container is not running, and no task, shim or process carries its id or its sandbox's.",
      "The runtime lists no sandbox with that id, and its list is complete.",
      "Asked for that sandbox alone, the runtime does not have it: a pod that is being made or removed does not count.",
    ],
  },
  byHand: [
    "crictl ps -a -o json | grep -B40 <sandbox id of the message>, then crictl rm <container id>.",
    "systemctl restart kubelet (k3s, rke2-*).",
  ],
  danger: "crictl rm --force kills a container that still runs: check its state first.",
  links: ["k3s-io/k3s#4356", "kubernetes/kubernetes#98225", "kubernetes/kubernetes#107115"],
  detect: detectStrays,
  detectOffline: detectStoredStrays,
  healedAfterStart: ({ metadata, processes }) =>
    metadata.status === "read"
      ? storedStrays(metadata.value)
          .filter(({ sandboxId }) => livenessOfStored(sandboxId, metadata.value, processes).state === "dead")
          .map(({ id }) => id)
      : [],
};

function detectStrays(view: NodeView): readonly Detected[] {
  const { cri, containerd, processes } = view.snapshot;
  if (cri.status !== "read" || cri.value.sandboxesIncomplete === true) return [];
  const tasks = containerd.status === "read" ? read(containerd.value.tasks) : containerd;
  const node = nodeSigns(tasks, processes);
  const kubeletRuns = isKubeletAlive(view);
  return cri.value.containers.flatMap(({ id, sandboxId, name, state, labels }) => {
    // A running one may be all that is left of a pod: leftover-container reports it.
    if (state === "running" || !isFullId(sandboxId) || view.about(sandboxId).sandbox !== undefined) return [];
    if (hasIgnoreMark(labels)) return [];
    const containers = view.about(sandboxId).containers.map((one) => ({ ...one, isRunning: one.state === "running" }));
    const life = livenessOf({ id: sandboxId, cri: read({ isReady: false, containers }) }, node);
    if (life.state !== "dead") return [];
    const pod = podIn(labels);
    return [
      {
        severity: kubeletRuns ? "warning" : "critical",
        subject: { type: "container", name: id },
        summary: `container ${name}${pod === undefined ? "" : ` of pod ${pod}`} is left without its pod sandbox, which the runtime does not have`,
        evidence: [
          { source: "cri", fact: `container ${id} is ${state}, and its sandbox ${sandboxId} is not listed` },
          { source: "processes", fact: "no shim and no process carries the id of either" },
        ],
        blocks: kubeletRuns ? [] : [KUBELET_START],
        cure: [{ kind: "remove-container", containerId: id, sandboxId }],
      } satisfies Detected,
    ];
  });
}

const KUBELET_START = "the start of a kubelet 1.19 to 1.21 (k3s of these releases)";

function podIn(labels: Readonly<Record<string, string>>): string | undefined {
  const name = labels["io.kubernetes.pod.name"];
  return name === undefined ? undefined : `${labels["io.kubernetes.pod.namespace"]}/${name}`;
}

/** Records that the next start of containerd loads as containers without a sandbox. */
function storedStrays(file: MetadataFile) {
  const sandboxes = storedSandboxes(file);
  return file.records.flatMap(({ id, createdAt, container }) => {
    if (container === undefined || !isFullId(container.sandboxId) || sandboxes.has(container.sandboxId)) return [];
    // Without its directory the container is not loaded.
    return file.containerDirs?.has(id) === false ? [] : [{ id, createdAt, ...container }];
  });
}

function detectStoredStrays(file: MetadataFile, { processes }: OfflineFacts): readonly Detected[] {
  return storedStrays(file).map(({ id, createdAt, name, sandboxId }) => {
    const life = livenessOfStored(sandboxId, file, processes);
    return {
      severity: "critical",
      subject: { type: "container", name: id },
      summary: `the record of container ${name} is left without that of its pod sandbox: the next start of the runtime lists it, and old kubelets end because of it`,
      evidence: metadataEvidence([
        `${id}, ${createdInWords(createdAt)}: its sandbox ${sandboxId} has no record; ${livenessInWords(life)}`,
      ]),
      blocks: [KUBELET_START],
    };
  });
}

export const containerStatusLost: ClassDefinition = {
  id: "container-status-lost",
  code: "D7",
  title: "A container's status file was lost in a crash",
  explanation:
    "containerd keeps each container's state in a small file. After a power cut that file is empty or gone, so containerd no longer knows whether the container ran. It lists it with an unknown state, or, if its directory is gone too, not at all, and the kubelet then makes a second one.",
  mechanism:
    "At its start the CRI plugin loads the file “status” of each container. If that fails it goes on with the state UNKNOWN and writes the file again; where even that fails the container is left out. containerd 1.7 was seen to panic on such a container at its next start.",
  signatures: () => [
    {
      text: 'Failed to load container status for "<id>" … failed to read status from "<path>": … no such file or directory | unexpected end of JSON input',
      pattern:
        /failed to load container status for \S{1,90}[^]{0,300}?(?:failed to read status|failed to (?:unmarshal|decode)|unexpected end of json|no such file|unexpected version)/,
      confidence: 0.93,
    },
    {
      text: 'Failed to load container status for "<id>"',
      pattern: /failed to load container status for/,
      unless: /no space left/,
      level: "wrapper",
      confidence: 0.7,
    },
    {
      text: "failed to read status from <root>/io.containerd.grpc.v1.cri/containers/<id>/status",
      pattern: /failed to read status from \S{1,300}\/status/,
      confidence: 0.9,
    },
  ],
  logFragments: ["container status", "read status"],
  inSnapshot:
    "The runtime reads the file at its start alone; `unghost scan --offline` names each one that is empty or no JSON, and `unghost boot --dry-run` before the start. Afterwards containerd's log names it.",
  versions: {
    since: "every containerd release",
    until: "open",
    ends: "No upgrade: the file is written again at the next start. containerd 1.7 may panic on it (containerd/containerd#11646), so leave 1.7.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "containerd runs: the kubelet ends containers of unknown state and makes new ones; wait for it.",
      "containerd does not start, or two copies exist: stop it, and remove the container's record (see D2).",
    ],
    gates: ["No process carries the container's id.", "The file's time is before the boot."],
  },
  byHand: [
    "find <containerd root>/io.containerd.grpc.v1.cri/containers -name status -empty",
    "crictl ps -a | grep Unknown: crictl rm those that do not run.",
  ],
  danger: "An unknown state is no proof that the container ended: search for its processes first.",
  links: ["containerd/containerd#11646", "containerd/containerd/pull/11295", "containerd/containerd/pull/11645"],
  detectOffline: detectLostStatus,
};

function detectLostStatus(file: MetadataFile, { processes }: OfflineFacts): readonly Detected[] {
  const records = new Map(file.records.map((record) => [record.id, record.container]));
  return (file.brokenStatusFiles ?? []).flatMap(({ containerId, path, health, modifiedAt }) => {
    const container = records.get(containerId);
    // Without a record it is not loaded.
    if (container === undefined) return [];
    const life = livenessOfStored(containerId, file, processes);
    const what = health === "empty" ? "is empty" : "is not JSON";
    return [
      {
        severity: "warning",
        // It is detected while the runtime does not run.
        steps: [
          "Start the runtime: kubelet ends containers of unknown state and makes new ones.",
          `If it does not start because of this file: ctr --namespace k8s.io containers rm ${containerId}, with the CRI plugin switched off.`,
        ],
        subject: { type: "file", path },
        summary: `the state of container ${container.name} is lost: the next start of the runtime lists it as Unknown`,
        evidence: metadataEvidence([
          `${path} ${what}, last written ${modifiedAt.toISOString()}`,
          `${containerId}: ${livenessInWords(life)}`,
        ]),
      },
    ];
  });
}
