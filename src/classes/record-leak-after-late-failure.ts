import type { Detected } from "../evidence/finding.ts";
import { containerdBehaviour } from "../evidence/versions.ts";
import type { NodeView } from "../evidence/view.ts";
import { parseSandboxName, sandboxId } from "../node/types/ids.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const recordLeakAfterLateFailure: ClassDefinition = {
  id: "record-leak-after-late-failure",
  code: "C12",
  title: "Each failed start leaves a record, and the next restart will be fatal",
  explanation:
    "A pod fails late in its creation, and the runtime forgets to remove what it had written down. Each retry adds one more record of the same name. Nothing is visible until the runtime is restarted: then it refuses to start at all (D1).",
  mechanism:
    "After StartSandbox had succeeded, a failing NRI hook (or a time-out) returned without shutting the sandbox down. The records share one name, and recovery treats two equal names as fatal.",
  signatures: () => [{ text: "NRI RunPodSandbox failed: …", pattern: /nri runpodsandbox failed/, confidence: 0.9 }],
  logFragments: ["sandbox"],
  inSnapshot: "Two or more records in the runtime's store carry the same sandbox name.",
  versions: {
    since: "containerd 2.0",
    until: "containerd 2.0.x, 2.1.x, 2.2.5 and 2.3.2",
    ends: "Upgrade containerd to 2.2.6, 2.3.3 or 2.4.",
  },
  treatment: {
    mode: "attended",
    reversible: false,
    steps: [
      "Warn loudly and block every restart of the runtime.",
      "With consent: end the extra pause task and remove the record that CRI does not list.",
    ],
    gates: ["The record is not the one that CRI lists.", "It has no live container but pause."],
  },
  byHand: [
    "Before any restart: ctr -n k8s.io c ls, find records with equal names, remove those that crictl pods does not list.",
    "Upgrade to 2.2.6 or 2.3.3.",
  ],
  danger: "Removing the live one of the two.",
  links: [
    "containerd/containerd#13609",
    "containerd/containerd/pull/13399",
    "containerd/containerd/pull/13640",
    "containerd/containerd/pull/13859",
    "containerd/containerd/pull/13613",
  ],
  prevention: ({ name, version }) =>
    name.startsWith("containerd") && containerdBehaviour(version)?.leaksRecords === true
      ? `containerd ${version}: a sandbox that fails late leaves its record behind. Fixed in 2.2.6 and 2.3.3; do not restart containerd before the duplicates are gone.`
      : undefined,
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const { containerd, cri } = view.snapshot;
  if (containerd.status !== "read" || cri.status !== "read") return [];
  // Only container records reserve names at the next start: one that is only in the 2.x sandbox store is harmless.
  const byName = Map.groupBy(containerd.value.records, ({ sandbox }) => sandbox?.name);
  return [...byName].flatMap(([name, records]) => {
    if (name === undefined || records.length < 2) return [];
    const ids = records.map(({ id }) => id);
    const listed = ids.filter((id) => view.about(id).sandbox !== undefined);
    return ids
      .filter((id) => !listed.includes(id) && view.about(id).plugins.length === 0)
      .map(
        (id): Detected => ({
          severity: "critical",
          subject: { type: "record", name: id, sandboxId: sandboxId(id), pod: parseSandboxName(name) },
          summary: `${ids.length} records carry the name ${name}: the runtime runs on, but refuses to start again the next time it is restarted`,
          evidence: [
            { source: "containerd", fact: `${ids.join(" and ")} both carry the name ${name}` },
            {
              source: "cri",
              fact: listed.length > 0 ? `only ${listed.join(", ")} is listed` : "none of them is listed",
            },
          ],
          blocks: ["the next start of the runtime"],
        }),
      );
  });
}
