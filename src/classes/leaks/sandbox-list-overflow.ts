import type { FailureClass } from "../failure-class.ts";

export const sandboxListOverflow: FailureClass = {
  id: "sandbox-list-overflow",
  code: "C9",
  category: "leak",
  title: "Too many dead sandboxes to list",
  explanation:
    "The list of dead sandboxes has outgrown the largest message that the runtime can send. The kubelet goes blind, the node becomes NotReady, and crictl fails as well.",
  mechanism:
    "A CRI answer may be 16 MiB. When the kubelet's garbage collection is starved, tens of thousands of NotReady sandboxes exceed that.",
  signatures: () => [
    {
      text: "ResourceExhausted desc = grpc: trying to send message larger than max (<n> vs. 16777216)",
      pattern: /(?:trying to send|received) message larger than max/,
      within:
        /listpodsandbox|listcontainers|pod ?sandbox|pleg|runtime service|containergc|garbage collect|crictl|list(?:ing)? containers|cri-containerd|ctr:|vs\. 16777216|vs\. 8388608/,
      unless: /device plugin|registry-adapter/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "GenericPLEG: Unable to retrieve pods … ResourceExhausted",
      pattern: /(?:unable to retrieve pods|listpodsandbox)[^]{0,300}?resourceexhausted/,
      level: "cause",
      confidence: 0.9,
    },
    {
      text: "GenericPLEG: Unable to retrieve pods: …",
      pattern: /unable to retrieve pods/,
      within: /pleg/,
      unless: /connection refused|containerd\.sock|crio\.sock/,
      level: "symptom",
      confidence: 0.4,
      decides:
        "The error behind it: ResourceExhausted is this class; DeadlineExceeded points at a runtime that hangs (D5).",
    },
  ],
  logFragments: ["grpc", "retrieve pods", "larger than max"],
  inSnapshot: {
    visible: false,
    why: "A list that cannot be fetched is reported as a source that could not be read.",
  },
  versions: "All; the limit is 16 MiB.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["List in pages by label.", "Remove the dead sandboxes of pods that no longer exist, slowly."],
    gates: ["Each sandbox is dead and its pod gone.", "Few removals at a time: each is a CNI DEL."],
  },
  byHand: ["crictl pods --label … per namespace, or ctr -n k8s.io c ls; remove in small groups."],
  danger: "Removing thousands at once is a storm of CNI calls that takes the node down.",
  links: [
    "https://github.com/containerd/containerd/issues/12390",
    "https://github.com/kubernetes/kubernetes/issues/131407",
    "https://github.com/kubernetes/kubernetes/issues/108049",
    "https://github.com/kubernetes/kubernetes/issues/63858",
    "https://github.com/siderolabs/talos/issues/10801",
  ],
};
