import type { FailureClass } from "../failure-class.ts";

export const inflightClearing: FailureClass = {
  id: "inflight-clearing",
  code: "N3",
  category: "not-a-failure",
  title: "A name lock that clears without intervention",
  explanation:
    "The same message as A1 or A2, but the first request was only slow and has ended within ten minutes. The kubelet's next try succeeds.",
  mechanism:
    "A creation under load takes longer than the kubelet waits, then finishes or rolls back in an orderly way.",
  signatures: () => [],
  logFragments: [],
  inSnapshot: { visible: false, why: "It is over by the time of a scan; only time separates it from A1 and A2." },
  versions: "All.",
  treatment: { mode: "none", reversible: true, steps: [], gates: [] },
  byHand: ["Wait ten minutes before doing anything."],
  danger: "Acting too early turns a slow start into a failed one.",
  links: ["https://github.com/containerd/containerd/issues/4604"],
};
