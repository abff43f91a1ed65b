import type { FailureClass } from "../failure-class.ts";

export const eventedPlegStaleStatus: FailureClass = {
  id: "evented-pleg-stale-status",
  code: "A9",
  category: "creation-blocked",
  title: "EventedPLEG shows the kubelet an outdated pod",
  explanation:
    "Right after a restart of the runtime a kubelet with the EventedPLEG feature still uses an outdated status and tries to create a sandbox that exists. Mostly static pods are hit, so it is often the control plane.",
  mechanism:
    "With the feature gate on, the kubelet's pod cache is fed by runtime events; events lost over a runtime restart leave it stale. Suspected upstream, not proven.",
  signatures: () => [
    {
      text: "… is already in use by sandbox <id>",
      pattern: /conflict\. the name \S{1,400} is already in use by|is already in use by sandbox/,
      level: "cause",
      confidence: 0.3,
      decides:
        "The kubelet runs with the feature gate EventedPLEG and the pod is static: this class. The runtime is iSulad: O5.",
    },
    {
      text: 'failed to reserve sandbox name "…": name "…" is reserved for "<id>", for a static pod whose sandbox runs',
      pattern: /failed to reserve sandbox name/,
      level: "symptom",
      confidence: 0.05,
      decides: "The pod is static, the holder is listed, and the kubelet runs with EventedPLEG.",
    },
  ],
  logFragments: ["sandbox"],
  inSnapshot: {
    visible: false,
    why: "The kubelet's feature gates and its cache are not part of the node's state that can be read from outside.",
  },
  versions: "Kubelets with the feature gate EventedPLEG switched on.",
  treatment: {
    mode: "attended",
    reversible: true,
    steps: ["Restart the kubelet once.", "Switch the feature gate off."],
    gates: ["The holder is left alone."],
  },
  byHand: ["Set EventedPLEG=false in the kubelet's feature gates and restart it."],
  danger: "The holder may be the live sandbox of the API server. Never remove it.",
  links: [
    "https://github.com/kubernetes/kubernetes/issues/126514",
    "https://github.com/kubernetes/kubernetes/issues/123139",
  ],
};
