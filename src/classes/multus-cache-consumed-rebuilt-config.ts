import type { Candidate } from "../evidence/candidates.ts";
import { failsWithoutResult, isOfEarlierNetwork, networkReleased, wasNeverCreated } from "../evidence/ending.ts";
import type { Detected, Evidence } from "../evidence/finding.ts";
import { podPresence } from "../evidence/pod-presence.ts";
import { runtimeReports } from "../evidence/reports.ts";
import { sandboxDetected } from "../evidence/sandbox-detected.ts";
import { multusVariant } from "../evidence/versions.ts";
import type { NodeView } from "../evidence/view.ts";
import { valueOr } from "../host/source.ts";
import type { SandboxId } from "../node/types/ids.ts";
import type { Snapshot } from "../node/types/snapshot.ts";
import type { ClassDefinition } from "./failure-class.ts";

export const multusCacheConsumedRebuiltConfig: ClassDefinition = {
  id: "multus-cache-consumed-rebuilt-config",
  code: "B3",
  needsMultus: true,
  title: "Multus lost its cache and rebuilds an incomplete configuration",
  explanation:
    "The first removal of this pod's network failed, and multus threw its notes away all the same. As the pod still exists in the API, multus now rebuilds the configuration from there, without the details that only existed at creation time (device ids, for example), and the network plugin refuses it every time.",
  mechanism:
    "CmdDel deletes its cache after the first DEL even when that failed, unless retryDeleteOnError is set. With the cache missing and the pod in the API under the same uid, delegates are rebuilt from the API; with both missing DEL succeeds.",
  signatures: () => [
    {
      text: 'specify either "device", "hwaddr", "kernelpath" or "pciBusID"',
      pattern: /specify either device, ?hwaddr, ?kernelpath/,
      confidence: 0.9,
    },
    {
      text: 'DelegateDel: error invoking DelegateDel - "sriov": … LoadConf(): VF pci addr is required',
      pattern: /vf pci addr is required/,
      within: /failed \(delete\)|delegatedel|delnetwork|cmddel/,
      confidence: 0.85,
    },
    {
      text: "conflistDel: error converting the raw bytes into a conflist: … no 'plugins' key",
      pattern: /conflistdel: error converting the raw bytes into a conflist/,
      confidence: 0.75,
    },
    {
      text: "Multus: [<namespace>/<pod>]: error reading the delegates: open /var/lib/cni/multus/<id>: no such file or directory",
      pattern: /err(?:or)? (?:in )?reading the delegates|failed to read container data in the path/,
      confidence: 0.8,
    },
  ],
  logFragments: ["cni", "delegate", "plugin", "network", "hwaddr", "raw bytes into a conflist"],
  inSnapshot: {
    conclusive: true,
    how: "Thin multus is the configured plugin, the sandbox is NotReady, its multus cache is missing, and the pod is still in the API.",
  },
  versions: {
    since: "every release of thin multus; thick multus 4.0",
    until: "open",
    ends: "Use thick multus 4.0.2 or later, where DEL only leaks. Thin multus has it in every release.",
  },
  treatment: {
    mode: "automatic",
    reversible: true,
    steps: [
      "Give multus a cache file it cannot parse: DEL then returns success without calling the delegates, for as long as the sandbox exists.",
      "Let kubelet stop the sandbox, or stop and remove it over CRI.",
      "Sweep the addresses and devices the delegates had allocated.",
    ],
    gates: [
      "The sandbox is dead: NotReady, no container running, no task, no shim.",
      "The multus cache of this id does not exist.",
      "Removal fails with a delegate's error.",
    ],
  },
  byHand: [
    "Delete the pod object with --force: multus then finds neither pod nor cache and succeeds.",
    `Then release the addresses and VFs that the delegates had allocated, and set "retryDeleteOnError": true in the multus configuration.`,
  ],
  danger:
    "The delegates are never called, so their addresses and VFs leak unless they are swept. A pod of a StatefulSet that is deleted by force may run twice.",
  links: [
    "containerd/containerd#10507",
    "containerd/containerd#9064",
    "k8snetworkplumbingwg/multus-cni#355",
    "k8snetworkplumbingwg/multus-cni/pull/922",
    "k8snetworkplumbingwg/multus-cni/pull/1498",
    "k8snetworkplumbingwg/multus-cni#586",
    "cozystack/cozystack#2310",
  ],
  prevention: () =>
    `multus: set "retryDeleteOnError": true in its configuration; without it multus throws its cache away after the first DEL, even one that failed.`,
  detect,
};

function detect(view: NodeView, candidates: readonly Candidate[]): readonly Detected[] {
  const multus = valueOr(view.snapshot.cni.conf, undefined)?.multus;
  if (multus === undefined || !multusVariant(multus).failedDelBlocksRemoval) return [];
  return candidates.flatMap((candidate) => {
    const { sandbox, about } = candidate;
    const dir = valueOr(view.snapshot.cni.multus, undefined)?.dir ?? multus.cniDir;
    if (about.multus !== undefined || about.metadata?.hostNetwork === true) return [];
    // If the pod is gone from the API, multus finds neither cache nor pod, and its DEL succeeds.
    const pod = podPresence(sandbox, view);
    if (pod === "gone") return [];
    const halfMade =
      wasNeverCreated(sandbox) || (failsWithoutResult(about, view) && lastEndingFailed(sandbox.id, view.snapshot));
    const isMadeByMultus = about.metadata?.hasCniResult === true && !isOfEarlierNetwork(about, view);
    const addCompleted = isMadeByMultus && !networkReleased(about, view);
    if (!halfMade && !addCompleted) return [];
    const evidence: Evidence[] = [
      { source: "cni", fact: `multus is the node's network (${multus.confFile}) and has no cache file in ${dir}` },
      {
        source: "containerd",
        fact: halfMade ? "its creation never completed" : "its network had been set up, so DEL must succeed",
      },
    ];
    if (pod === "known") evidence.push({ source: "kubernetes", fact: "its pod still exists" });
    return [
      sandboxDetected(candidate, {
        severity: "critical",
        summary:
          "without its cache multus rebuilds the delegates' configuration from the API and calls them without the state they need; their DEL fails, and so does every removal",
        evidence,
        path: `${dir}/${sandbox.id}`,
        cure: [{ kind: "multus-marker", sandboxId: sandbox.id, dir }],
      }),
    ];
  });
}

/** Whether the newest report about stopping or removing this sandbox is a failure. */
function lastEndingFailed(id: SandboxId, snapshot: Snapshot): boolean {
  const newest = runtimeReports(snapshot).findLast(
    (report) =>
      report.kind !== "config-rejected" &&
      report.sandboxId === id &&
      (report.kind === "network-released" || report.operation !== "create-sandbox"),
  );
  return newest?.kind === "failed";
}
