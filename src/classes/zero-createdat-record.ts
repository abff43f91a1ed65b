import type { Candidate } from "../evidence/candidates.ts";
import { wasNeverCreated, wasRecovered } from "../evidence/ending.ts";
import type { Detected } from "../evidence/finding.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { NodeView } from "../evidence/view.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const zeroCreatedatRecord: ClassDefinition = {
  id: "zero-createdat-record",
  code: "A10",
  title: "Half-made sandbox record with a zero creation time",
  explanation:
    "The runtime died between writing down a new sandbox and starting it. After the restart it lists the sandbox as NotReady, hundreds of years old, but protects no name for it.",
  mechanism:
    "containerd 2.x also recovers from the sandboxes bucket. A record without a started pause container comes back with Go's zero time, over CRI -6795364578871345152 ns, and its name is not reserved. Two records of one name can then reach the store (D1).",
  signatures: () => [
    {
      text: '"createdAt": "-6795364578871345152"',
      pattern: /-6795364578871345152/,
      confidence: 0.75,
      decides:
        "containerd 2.x and no record in the containers bucket: this class. containerd 1.6 after a failed creation: A5.",
    },
    {
      text: "<id>  27x years ago  NotReady  <pod>  <namespace>",
      pattern: /\b2[5-9]\d years ago\b/,
      within: /notready|sandbox|containerd|crictl|createdat/,
      confidence: 0.6,
      decides: "containerd 2.x: this class. containerd 1.6 or 1.7 after a failed creation: A5.",
    },
  ],
  logFragments: ["years ago", "6795364578871345152"],
  inSnapshot: {
    conclusive: true,
    how: "A NotReady sandbox with zero creation time and no container record behind it.",
  },
  versions: { since: "containerd 2.0", until: "open", ends: "No upgrade: 2.3 and main have it." },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: ["Stop and remove the sandbox over CRI."],
    gates: [
      "The sandbox is dead: NotReady, no container, no task, no shim.",
      "No creation of the same pod is in flight.",
    ],
  },
  byHand: ["crictl rmp <id>"],
  danger: "Low. If a CNI result was recorded the removal may fail like any B class; treat it as such.",
  links: ["containerd/containerd/pull/13613", "containerd/containerd/pull/11576"],
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  return candidates
    .filter(({ sandbox, about }) => wasNeverCreated(sandbox) && wasRecovered(about, view))
    .map((candidate) => ({
      ...sandboxDetected(candidate, {
        summary:
          "the runtime died between saving this sandbox and starting it, and recovered it without its creation time and without reserving its name",
        evidence: [
          { source: "cri", fact: "its creation time is Go's zero time" },
          { source: "containerd", fact: "the sandbox store has it, the container records have not" },
        ],
      }),
      // The name is not reserved, so nothing waits for it.
      blocks: [],
    }));
}
