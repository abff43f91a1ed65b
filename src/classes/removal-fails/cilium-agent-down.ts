import type { FailureClass } from "../failure-class.ts";

export const ciliumAgentDown: FailureClass = {
  id: "cilium-agent-down",
  code: "B11",
  category: "removal-fails",
  sharedCause: true,
  title: "The cilium agent is down",
  explanation:
    "Cilium's plugin cannot reach the cilium agent of this node. Older versions fail at once; newer ones write removals into a queue and fail only when that queue is full or locked. Everything clears when the agent is back.",
  mechanism:
    "The plugin talks to /var/run/cilium/cilium.sock. With the deletion queue, DEL is stored as a file below the state directory, at most 256 of them, and replayed when the agent starts.",
  signatures: () => [
    {
      text: "unable to connect to Cilium daemon: failed to create cilium agent client after 30.000000 seconds timeout: … Is the agent running?",
      pattern: /unable to connect to cilium|failed to create cilium agent client/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: "dial unix /var/run/cilium/cilium.sock: connect: no such file or directory",
      pattern: /cilium\.sock: connect/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "failed to acquire deletion queue: … / deletion queue directory … has too many entries; aborting",
      pattern:
        /failed to acquire deletion queue|deletion queue directory \S{1,200} has too many entries|deletequeue has too many entries/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["cilium", "deletion queue", "deletequeue"],
  inSnapshot: {
    visible: false,
    why: "The agent's socket and queue are not read; the plugin's error in the logs is the proof.",
  },
  versions: "First text: before the deletion queue existed. Second: with it.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Get the cilium pod of this node running; the queue then drains automatically."],
    gates: [],
  },
  byHand: ["kubectl -n kube-system get pods -l k8s-app=cilium -o wide: repair the one on this node, then wait."],
  danger: "Deleting the queue's files loses removals; addresses are then handed out twice.",
  links: [
    "https://github.com/cri-o/cri-o/issues/4084",
    "https://github.com/rancher/rke2/issues/4146",
    "https://github.com/cilium/cilium/issues/27715",
    "https://github.com/cilium/cilium/issues/40345",
  ],
};
