import type { Detected } from "../evidence/finding.ts";
import { hungProcess } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import { sandboxId } from "../node/types/ids.ts";
import type { ProcessFacts, ShimProcess } from "../node/types/runtime.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const shimLeak: ClassDefinition = {
  id: "shim-leak",
  code: "C8",
  title: "Shim process without a sandbox",
  explanation:
    "A shim is still running for a sandbox that the runtime has forgotten. It costs memory, and with a live container behind it something may still run that no tool lists.",
  mechanism: "Under I/O pressure the delete call was cancelled before the shim was asked to exit.",
  signatures: () => [
    {
      text: "failed to delete shim / failed to clean up after shim disconnected",
      pattern:
        /failed to (?:delete|clean ?up) (?:dead |after )?shim|cleanup failed to delete shim|shim might be leaked|failed to shutdown shim/,
      confidence: 0.7,
    },
    {
      text: "failed to handle sandbox TaskExit event: failed to stop sandbox: failed to delete task: context deadline exceeded",
      pattern:
        /failed to handle (?:sandbox |container )?(?:taskexit event|event &taskexit)|failed to delete task[^]{0,80}?deadline exceeded/,
      confidence: 0.65,
    },
  ],
  logFragments: ["shim", "delete task", "exit event", "taskexit"],
  inSnapshot:
    "A containerd-shim process of this containerd (its socket, the namespace k8s.io, root's, in no container) whose id is neither listed over CRI nor in the runtime's records.",
  versions: {
    since: "every release",
    until: "open",
    ends: "Upgrade containerd to 1.6.24 or 1.7.4, where it is rarer; 1.7.32 and 2.x still have it under churn.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: ["Ask the shim to end with SIGTERM when it has no child but pause."],
    gates: [
      "The shim is this containerd's: -address is its socket, -namespace is k8s.io.",
      "The id is in no store.",
      "The shim is older than an hour.",
      "Its only child is pause, or it has none.",
    ],
  },
  byHand: [
    "ps -ef | grep containerd-shim: end by pid those with -namespace k8s.io and this containerd's -address whose -id neither crictl pods nor ctr -n k8s.io c ls knows.",
  ],
  danger: "One shim serves all containers of a pod: ending a live one leaves the pod without supervision.",
  links: [
    "containerd/containerd#12344",
    "containerd/containerd#13692",
    "containerd/containerd#8381",
    "containerd/containerd#7496",
  ],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const { containerd, processes, cri } = view.snapshot;
  if (containerd.status !== "read" || processes.status !== "read" || cri.status !== "read") return [];
  // A task proves nothing: a restarted containerd lists one for every shim, with or without a record.
  const known = new Set<string>([
    ...containerd.value.records.map(({ id }) => id),
    ...containerd.value.sandboxes.map(({ id }) => id),
    ...cri.value.sandboxes.map(({ id }) => id),
  ]);
  return processes.value.shims
    .filter((shim) => !known.has(shim.id) && !isNested(shim, processes.value))
    .map((shim): Detected => {
      const id = sandboxId(shim.id);
      return {
        severity: "warning",
        subject: { type: "process", pid: shim.pid, sandboxId: id },
        summary: `a shim of a sandbox that the runtime no longer knows has been running for ${durationInWords(shim.ageSeconds)}`,
        evidence: [
          {
            source: "processes",
            fact: `pid ${shim.pid} is a shim with id ${shim.id}, ${shim.childPids.length} children`,
          },
          { source: "containerd", fact: "no record has that id" },
          { source: "cri", fact: "the runtime lists no such sandbox" },
        ],
        cure: [{ kind: "end-process", ...hungProcess({ ...shim, sandboxId: id }) }],
      };
    });
}

/** In another container's cgroup: the shim of a node that runs in a container here (kind). */
function isNested({ pid, id }: ShimProcess, { byContainer }: ProcessFacts): boolean {
  for (const [containerId, pids] of byContainer) if (containerId !== id && pids.includes(pid)) return true;
  return false;
}
