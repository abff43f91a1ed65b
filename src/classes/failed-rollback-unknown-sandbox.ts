import type { Candidate } from "../evidence/candidates.ts";
import type { Detected } from "../evidence/finding.ts";
import { incompleteSandboxes } from "../evidence/sandbox-creations.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import type { NodeView } from "../evidence/view.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const failedRollbackUnknownSandbox: ClassDefinition = {
  id: "failed-rollback-unknown-sandbox",
  code: "A5",
  title: "Failed creation whose clean-up failed too",
  explanation:
    "Creating the sandbox failed, and undoing that failed as well, mostly because its network could not be torn down. The runtime keeps the half-made sandbox, shows it as NotReady and keeps its name reserved until it can be removed in an orderly way. The kubelet tries to stop it again and again, and gets the same error each time.",
  mechanism:
    "RunPodSandbox rolls back when CNI ADD fails. If CNI DEL fails too, the sandbox is stored in state UNKNOWN and its name is kept on purpose until RemovePodSandbox succeeds. On containerd 1.6 its creation time is zero.",
  signatures: () => [
    {
      text: 'encountered an error cleaning up failed sandbox "<id>", marking sandbox state as SANDBOX_UNKNOWN',
      pattern:
        /encountered an error cleaning up failed sandbox|marking sandbox state as sandbox_unknown|failed to fully teardown sandbox resources/,
      confidence: 0.8,
    },
  ],
  logFragments: ["sandbox", "cni"],
  inSnapshot:
    "A NotReady sandbox without a completed CNI result; on containerd 1.6 with Go's zero creation time (crictl pods prints “272 years ago”).",
  versions: {
    since: "containerd 1.6.9",
    until: "containerd 1.6.36 and 1.7.22",
    ends: "Upgrade containerd to 1.7.31, 2.0.8, 2.1.7, 2.2.2 or later: there a sandbox whose ADD never completed can be stopped.",
    note: "It remains in every release where a CNI result was recorded, or where the pause container could not be cleaned up.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "Find and remove what makes CNI DEL fail (the B classes).",
      "Stop and remove the sandbox over CRI; the runtime then releases the name itself.",
    ],
    gates: [
      "The sandbox is dead: NotReady, no container running, no task, no shim.",
      "It was never completely created, or its pod is gone, has another uid or lives elsewhere.",
    ],
  },
  byHand: [
    "Repair the network plugin that fails (its own pod, its token, its binary).",
    "crictl stopp <id> && crictl rmp <id>, with a time-out of at least 130 s (crictl's default of 2 s kills a slow DEL half way).",
    "Upgrade containerd to 1.6.37, 1.7.31 or 2.x.",
  ],
  danger:
    "Unmounting the network namespace by hand lets some plugins succeed, but whatever they had allocated stays allocated.",
  links: [
    "containerd/containerd#5768",
    "containerd/containerd#5438",
    "containerd/containerd#8774",
    "containerd/containerd/pull/5904",
    "containerd/containerd/pull/10744",
    "containerd/containerd/pull/10770",
    "kubernetes/kubernetes#141599",
  ],
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  return incompleteSandboxes(candidates, view).map((candidate) =>
    sandboxDetected(candidate, {
      severity: "critical",
      summary:
        "its creation failed, and the clean-up after that failed too: the runtime keeps the name on purpose until the sandbox is removed",
      evidence: [{ source: "cri", fact: "its creation time is Go's zero time: it was never completely created" }],
    }),
  );
}
