import type { FailureClass } from "../failure-class.ts";

export const clockStepContainerRestartcount: FailureClass = {
  id: "clock-step-container-restartcount",
  code: "A4",
  category: "creation-blocked",
  title: "Clock step made the kubelet reuse a restart count",
  explanation:
    "The kubelet tries to start a container that is already running: after a clock step it reads an outdated status and asks for a restart number that is taken. The pod shows CreateContainerError although its container works.",
  mechanism:
    "The kubelet keeps container statuses by creation time; after a backward step a stale one wins and the restart count is computed from it. The name that results belongs to a container that is often alive.",
  signatures: () => [
    {
      text: 'failed to reserve container name "…": name "…" is reserved for "<id>", and <id> runs',
      pattern: /failed to reserve container name/,
      level: "symptom",
      confidence: 0.15,
      decides:
        "crictl inspect of the holder: it exists and is running, or exited long ago, while the kubelet reports CreateContainerError.",
    },
    {
      text: 'Conflict. The container name "/k8s_<container>_…" is already in use by container "<id>", and <id> runs',
      pattern: /container name \/?k8s_(?!pod_)\S{1,400} is already in use by container/,
      decides: "The holder runs, and the clock stepped: this class. The holder is a dead one from before a crash: O4.",
      level: "cause",
      confidence: 0.3,
    },
  ],
  logFragments: ["container name"],
  inSnapshot: {
    visible: false,
    why: "Not detected yet. It would show as a second container of the same pod, name and restart count, with creation times out of order.",
  },
  versions: "All kubelets; the upstream change was still open when this was written.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Holder created or exited, older than ten minutes: remove that container.",
      "Holder running: restart the kubelet only.",
    ],
    gates: ["The holder does not run.", "It is no static control-plane pod."],
  },
  byHand: [
    "Inspect the holder: crictl inspect <id>.",
    "Running: restart the kubelet and touch nothing else. Never started: crictl rm <id>.",
  ],
  danger: "The holder may be the live container of a control-plane pod; removing it takes the API server down.",
  links: [
    "https://github.com/kubernetes/kubernetes/issues/134153",
    "https://github.com/kubernetes/kubernetes/issues/90298",
    "https://github.com/kubernetes/kubernetes/issues/94557",
    "https://github.com/kubernetes/kubernetes/pull/138191",
    "https://github.com/Faisal-Hajari/ai-platform/issues/21",
    "https://github.com/cri-o/cri-o/issues/8629",
  ],
};
