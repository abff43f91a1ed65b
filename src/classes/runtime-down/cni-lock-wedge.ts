import type { FailureClass } from "../failure-class.ts";

export const cniLockWedge: FailureClass = {
  id: "cni-lock-wedge",
  code: "D5",
  title: "One hung plugin blocks the whole runtime",
  explanation:
    "A network plugin hangs while the CNI configuration changed. From then on every network call and every status question waits behind it; the node turns NotReady with “container runtime is down”, although crictl pods still answers.",
  mechanism:
    "go-cni holds a read lock for the whole run of a plugin. A reload asks for the write lock, and Go then lets no further reader in: Run, Stop and Status block together.",
  signatures: () => [
    {
      text: "Status from runtime service failed: rpc error: code = DeadlineExceeded …",
      pattern: /status from runtime service failed[^]{0,200}?deadline ?exceeded/,
      unless: /podsandbox ?status|container ?status|imagefsinfo/,
      level: "cause",
      confidence: 0.7,
    },
    {
      text: "container runtime is down",
      pattern: /container runtime is down/,
      level: "symptom",
      confidence: 0.45,
      decides:
        "crictl pods answers while crictl info hangs: this class. Neither answers: the runtime itself is down; look at its own log (D1 to D4).",
    },
    {
      text: "GenericPLEG: Unable to retrieve pods: … DeadlineExceeded",
      pattern: /unable to retrieve pods[^]{0,200}?deadline ?exceeded/,
      level: "symptom",
      confidence: 0.45,
      decides: "crictl pods answers while crictl info hangs.",
    },
  ],
  inSnapshot: {
    visible: false,
    why: "A status that is not answered is reported as a source that could not be read; the plugin that hangs is found as A1 or B14.",
  },
  versions: "All; rarer since the configuration is reloaded on file events only.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["End the oldest CNI plugin process tree.", "If Status still hangs, restart the runtime under its gates."],
    gates: [
      "Status has not answered for minutes while List does.",
      "The plugin process is older than the in-flight grace.",
    ],
  },
  byHand: ["Find the oldest process with CNI_COMMAND in its environment, end it; else restart the runtime."],
  danger: "Ending a plugin that is merely slow fails that one pod.",
  links: [
    "https://github.com/containerd/containerd/issues/4666",
    "https://github.com/containerd/cri/issues/1078",
    "https://github.com/containerd/cri/pull/1405",
    "https://github.com/projectcalico/calico/issues/2902",
  ],
};
