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
    "The runtime lists a container that belongs to no listed sandbox. Not detected yet; the id is in the kubelet's message.",
  versions:
    "Fatal in kubelet 1.19 to 1.21 and k3s of those releases. Current kubelets skip the container and log it: an upgrade ends the crash loop.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Find the container: crictl ps -a -o json, the one whose podSandboxId is the id of the message.",
      "Not running: remove it (crictl rm <container>), and start the kubelet.",
    ],
    gates: ["The container is not running, and no process carries its id.", "No sandbox with that id is listed."],
  },
  byHand: [
    "crictl ps -a -o json | grep -B40 <sandbox id of the message>, then crictl rm <container id>.",
    "systemctl restart kubelet (k3s, rke2-*).",
  ],
  danger: "crictl rm --force kills a container that still runs: check its state first.",
  links: ["k3s-io/k3s#4356", "kubernetes/kubernetes#98225", "kubernetes/kubernetes#107115"],
};

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
    "An empty or missing file “status” in the CRI plugin's directory of a container. Not read yet; containerd's log names the file.",
  versions: "All containerd releases; 1.7 may panic on it (containerd/containerd#11646).",
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
};
