import type { Detected } from "../evidence/finding.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const cniDelQueued: ClassDefinition = {
  id: "cni-del-queued",
  code: "C15",
  title: "DELs that the CNI guard repeats",
  explanation:
    "A network plugin failed to release what a removed pod had, and the CNI guard answered for it, so that the pod's name became free. Until the plugin has done the DEL its addresses and links stay in use.",
  mechanism:
    "The guard keeps each such DEL with its configuration and repeats it when the plugin answers again: at the next call of the same plugin, and at intervals by the agent.",
  inSnapshot: { conclusive: true, how: "Files in the guard's queue, /var/lib/unghost/cni/queue." },
  versions: {
    since: "nodes with the CNI guard",
    until: "open",
    ends: "No upgrade: the plugin or its daemon has to work again.",
  },
  treatment: {
    mode: "none",
    reversible: true,
    steps: [
      "Repair what the plugin's message names: its daemon, its executable, its configuration. The guard releases the rest.",
    ],
    gates: [],
  },
  byHand: [
    "Read the message of the oldest DEL: unghost cni status, and /var/lib/unghost/cni/log.",
    "Restart the network add-on's pod on this node.",
  ],
  danger: "Do not delete the files: they are the only record of what has to be released.",
  links: ["containernetworking/cni/pull/1072", "k8snetworkplumbingwg/multus-cni/pull/1498"],
  detect,
};

/** A daemon that restarts takes less. */
const USUAL_MS = 600_000;

/** One finding, whatever their number: they have one cause, or few. */
function detect({ snapshot: { cni, observedAt } }: NodeView): readonly Detected[] {
  if (cni.guardQueue === undefined) return [];
  const { waiting, oldest } = cni.guardQueue;
  const ageMs = observedAt.getTime() - oldest.since.getTime();
  return [
    {
      severity: ageMs > USUAL_MS ? "warning" : "info",
      subject: { type: "node", name: "cni-queue" },
      summary: `the CNI guard repeats ${waiting === 1 ? "a DEL" : `${waiting} DELs`} that ${oldest.plugin} failed, the oldest for ${durationInWords(ageMs / 1000)}: addresses and links stay in use until then`,
      evidence: [
        { source: "cni", fact: `${oldest.plugin} failed the DEL of ${oldest.interface} in ${oldest.sandboxId}` },
        ...(oldest.words === "" ? [] : [{ source: "cni", fact: `${oldest.plugin}: ${oldest.words}` }]),
      ],
    },
  ];
}
