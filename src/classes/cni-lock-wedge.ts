import { affectedPods } from "../evidence/affected-pods.ts";
import type { Detected } from "../evidence/finding.ts";
import { cniLockState, LOCK_GRACE_MS } from "../evidence/locks.ts";
import {
  callReports,
  distinctPods,
  isFresh,
  podOfCall,
  podsInWords,
  podsWaitingForNetwork,
} from "../evidence/reports.ts";
import { hungProcess } from "../evidence/step.ts";
import type { NodeView } from "../evidence/view.ts";
import { durationInWords } from "../host/text.ts";
import type { NamedPod } from "../node/types/ids.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const cniLockWedge: ClassDefinition = {
  id: "cni-lock-wedge",
  code: "D5",
  blocksEveryCall: true,
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
      confidence: 0.7,
    },
    {
      text: "container runtime is down",
      pattern: /container runtime is down/,
      level: "symptom",
      confidence: 0.45,
      decides:
        "crictl pods answers while crictl info hangs: this class. Neither answers: the runtime itself is down; check its own log (D1 to D4).",
    },
    {
      text: "GenericPLEG: Unable to retrieve pods: … DeadlineExceeded",
      pattern: /unable to retrieve pods[^]{0,200}?deadline ?exceeded/,
      level: "symptom",
      confidence: 0.45,
      decides: "crictl pods answers while crictl info hangs.",
    },
  ],
  logFragments: ["container runtime is down", "runtime service failed", "retrieve pods"],
  inSnapshot:
    "Version and the lists are answered and Status is not, while processes with CNI_COMMAND in their environment run for more than a minute. A change of the CNI configuration directory after their start confirms it.",
  versions: {
    since: "containerd 2.0, whose go-cni holds the lock while a plugin runs",
    until: "open",
    ends: "No upgrade: 2.3 has it. A network plugin that ends by its own deadline prevents it.",
    note: "containerd 1.6.20 answers Status in the same situation.",
  },
  treatment: {
    mode: "automatic",
    reversible: false,
    steps: [
      "End the CNI plugin processes that hold the lock.",
      "See that Status answers and, where an API server can be asked, that kubelet reports the node Ready.",
      "If Status still hangs, restart the runtime.",
    ],
    gates: [
      "Status is not answered while the lists are, immediately before the first process is ended.",
      "Each plugin process is older than a minute (or --inflight-grace, where that is shorter), and its sandbox is not Ready.",
    ],
  },
  byHand: ["Find the oldest process with CNI_COMMAND in its environment, end it; else restart the runtime."],
  danger: "Ending a plugin that is only slow fails that one pod.",
  links: ["containerd/containerd#4666", "containerd/cri#1078", "containerd/cri/pull/1405", "projectcalico/calico#2902"],
  detect,
};

function detect(view: NodeView): readonly Detected[] {
  const lock = cniLockState(view);
  if (lock === undefined) return [];
  const graceMs = Math.min(view.policy.inflightGraceMs, LOCK_GRACE_MS);
  const holders = lock.holders.filter(({ ageSeconds }) => ageSeconds * 1000 >= graceMs);
  const [oldest] = holders;
  if (oldest === undefined) return [];
  const inCalls = distinctPods(holders.flatMap((holder) => podOfCall(holder, view)));
  const reload =
    lock.confChangedSince === true ? "the CNI configuration was reloaded meanwhile" : "something waits for it";
  return [
    {
      severity: "critical",
      subject: { type: "node", name: view.snapshot.node },
      summary: `${holders.length === 1 ? "a network plugin has" : `${holders.length} network plugins have`} held the runtime's CNI lock for up to ${durationInWords(oldest.ageSeconds)}, and ${reload}: Status and every creation and removal of a pod wait behind it, and the node is or will be NotReady`,
      evidence: [
        {
          source: "cri",
          fact: `Status was not answered within ${lock.statusHangsMs / 1000}s, while Version and the lists were`,
        },
        ...(lock.confChangedSince === true
          ? [{ source: "cni", fact: "the CNI configuration directory changed after the oldest plugin had started" }]
          : []),
        ...holders
          .slice(0, MAX_NAMED)
          .map(({ pid, command, cniCommand, ageSeconds }) => ({
            source: "processes",
            fact: `pid ${pid} (${command}) carries CNI_COMMAND=${cniCommand} since ${durationInWords(ageSeconds)}`,
          })),
      ],
      ...affectedPods([...inCalls, ...reportedPods(view), ...podsWaitingForNetwork(view)], view),
      blocks: [
        "every pod that is to start or stop on this node",
        ...(inCalls.length === 0 ? [] : [`${podsInWords(inCalls)}: in a call that hangs`]),
      ],
      cure: [{ kind: "free-cni-lock", ...nodeInCluster(view), holders: holders.map(hungProcess) }],
      explains: holders.map(({ sandboxId }) => sandboxId),
    },
  ];
}

const MAX_NAMED = 5;

function reportedPods(view: NodeView): readonly NamedPod[] {
  return callReports(view).flatMap((report) =>
    report.pod === undefined || report.code === "volume" || !isFresh(report, view) ? [] : [report.pod],
  );
}

function nodeInCluster({ snapshot: { kubernetes, node } }: NodeView): { readonly node?: string } {
  return kubernetes.source === "api" ? { node: kubernetes.nodeName ?? node } : {};
}
