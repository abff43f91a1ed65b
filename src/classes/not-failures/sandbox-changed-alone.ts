import type { FailureClass } from "../failure-class.ts";

export const sandboxChangedAlone: FailureClass = {
  id: "sandbox-changed-alone",
  code: "N4",
  category: "not-a-failure",
  title: "“Pod sandbox changed”, alone",
  explanation:
    "The kubelet noticed that the pod's sandbox is gone or different and makes a new one. After a reboot every pod logs this once. Only when it repeats for minutes is there a cause, and another line has it.",
  mechanism: "The kubelet compares the newest sandbox with what the pod needs and announces the replacement.",
  signatures: () => [],
  logFragments: [],
  inSnapshot: { visible: false, why: "It is an announcement, not a state." },
  versions: "All.",
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["If it repeats, search for KillPodSandbox or CreatePodSandbox errors of the same pod in the kubelet's log."],
  danger: "None.",
  links: ["https://github.com/kubernetes/kubernetes/issues/56996"],
};
