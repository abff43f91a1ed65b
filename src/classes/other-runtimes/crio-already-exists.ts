import type { FailureClass } from "../failure-class.ts";

export const crioAlreadyExists: FailureClass = {
  id: "crio-already-exists",
  code: "O2",
  category: "other-runtime",
  title: "CRI-O: a sandbox of this name already exists",
  explanation:
    "An old CRI-O still knows a sandbox or container of this name from before a restart and cannot make a second. Today's CRI-O deletes what it cannot restore.",
  mechanism: "On start old releases reserved the names of sandboxes they then failed to load.",
  signatures: () => [
    {
      text: 'pod sandbox with name "<n>" already exists',
      pattern: /pod sandbox with name \S{1,400} already exists/,
      level: "cause",
      confidence: 0.95,
    },
    {
      text: 'conflict, name "<n>" already reserved for ctr "<id>"',
      pattern: /name \S{1,400} already reserved for (?:ctr|pod|container|sandbox)/,
      level: "cause",
      confidence: 0.95,
    },
  ],
  logFragments: ["sandbox", "reserve"],
  inSnapshot: { visible: false, why: "CRI-O's name index is in its memory only; the log names the holder." },
  versions: "Old CRI-O.",
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Remove the old sandbox over CRI, or restart crio.", "Upgrade CRI-O."],
    gates: ["The sandbox is dead."],
  },
  byHand: ["crictl pods --name <pod>: crictl rmp the dead one, or restart crio."],
  danger: "The holder may be running; check before removing it.",
  links: ["https://github.com/cri-o/cri-o/issues/1742", "https://github.com/cri-o/cri-o/issues/497"],
};
